import { LRUCache } from "lru-cache";
import type { BlockId } from "../../core/heads.ts";
import type { FoundState, KnownBlockState, StateKeys, StateSource, StateValues } from "../../core/stateReader.ts";
import type { Hash } from "../../ethereum/hex.ts";
import type { Awaitable, Call } from "../../jsonrpc/call.ts";
import type { Version } from "../store/unfollowedValues.ts";
import type { ValueStore } from "../store/valueStore.ts";
import { createPrefetch, type PredictedKeys, type PrefetchHint } from "./prefetch.ts";
import type { ValueFetch } from "./stateFetcher.ts";
import { blockHashCall, parseBlockHash } from "./stateRequests.ts";
import {
  contradicts,
  type Found,
  foundIn,
  foundInTrace,
  keysOf,
  partsOf,
  stateValuesOf,
  type Wanted,
  wantedOf,
} from "./wantedState.ts";

export interface NodeStateOptions {
  readonly fetch: ValueFetch;
  /** Returns the store of the chain. Another chain may take it over. */
  readonly store: () => ValueStore;
  /** Returns block hashes that need no request. */
  readonly hashOf?: (number: bigint) => Hash | undefined;
  /** Returns a name that changes when stored values must be read again. Default: they are valid until they are evicted. */
  readonly epoch?: () => string;
  /** Receives the number of values of each batch. */
  readonly onFetch?: (values: number) => void;
}

/** How one execution reads state. */
export interface StateUse {
  readonly onRead?: OnStateRead | undefined;
  /** Called with the price of calls to nodes that were answered. */
  readonly onSpent?: ((units: number) => void) | undefined;
  /** The values that no node is asked for. Default: none. */
  readonly known?: KnownBlockState | undefined;
  /** Runs each part of a read when it is the client's turn. Default: each read is one part, and waits for no turn. */
  readonly takeTurn?: TakeTurn | undefined;
}

type TakeTurn = <Result>(task: () => Promise<Result>) => Promise<Result>;

/** Called with the number of calls to nodes before a source sends the first of them. Throws if they are too many. */
export type OnStateRead = (calls: number) => void;

const MAX_BLOCK_HASHES = 10_000;

/** One read of an execution. */
interface RunningRead extends StateUse {
  readonly block: BlockId;
  /** Names the block in this epoch. */
  readonly name: string;
  readonly store: ValueStore;
  readonly version: Version;
  readonly hint: PrefetchHint | undefined;
  readonly signal: AbortSignal;
  /** What the execution gets. All values return together: with a part of them, it would guess the rest and fetch the results of its guesses. */
  readonly found: Found[];
  readonly blockHashes: Map<bigint, Hash>;
}

/** Reads state at sealed blocks: known values, then those of the store, then nodes. Equal reads in flight are coalesced. */
export class NodeState {
  readonly #options: NodeStateOptions;
  readonly #blockHashes = new LRUCache<string, Hash>({ max: MAX_BLOCK_HASHES });
  /** Resolves with what a fetch has found when it ends. Never rejects. */
  readonly #inFlight = new Map<string, Promise<ReadonlyMap<string, Found>>>();
  readonly #planPrefetch = createPrefetch();

  constructor(options: NodeStateOptions) {
    this.#options = options;
  }

  /**
   * Returns the state after a block. `hint`: calls that will be executed there. Nodes that can do so predict what the calls will
   * read. Reads reject with a node's error.
   */
  at(block: BlockId, hint?: PrefetchHint, use: StateUse = {}): StateSource {
    const epoch = this.#options.epoch?.() ?? "";
    const name = block.hash + epoch;
    let unused = hint;
    return {
      id: use.known === undefined ? name : use.known.id + epoch,
      // Only the first read sends the prefetch hint.
      read: (keys, signal) => {
        const current = unused;
        unused = undefined;
        const store = this.#options.store();
        const version = store.unfollowed.versionOf(name);
        const own = { found: [], blockHashes: new Map() };
        return this.#read({ ...use, ...own, block, name, store, version, hint: current, signal }, keys);
      },
    };
  }

  async #read(read: RunningRead, keys: StateKeys): Promise<StateValues> {
    const known = await findKnown({ ...keys, blockHashes: [] }, read);
    await this.#complete(read, wantedOf(known.missing), this.#findBlockHashes(read, keys.blockHashes));
    const fetched = stateValuesOf(read.found);
    const { values } = known;
    return {
      accounts: [...fetched.accounts, ...values.accounts],
      codes: [...fetched.codes, ...values.codes],
      slots: [...fetched.slots, ...values.slots],
      blockHashes: [...read.blockHashes],
    };
  }

  /** Returns the numbers whose hashes a node must return. */
  #findBlockHashes({ name, blockHashes }: RunningRead, numbers: readonly bigint[]): readonly bigint[] {
    return numbers.filter((number) => {
      const hash = this.#options.hashOf?.(number) ?? this.#blockHashes.get(`${name}#${number}`);
      if (hash !== undefined) {
        blockHashes.set(number, hash);
      }
      return hash === undefined;
    });
  }

  /** Finds values in the store and fetches the others. All calls are counted before the first one. */
  async #complete(read: RunningRead, wanted: readonly Wanted[], numbers: readonly bigint[]): Promise<void> {
    const { block, name, blockHashes, hint, onRead } = read;
    const missing = wanted.filter((each) => !this.#takeStored(read, each));
    const own = missing.filter((each) => !this.#inFlight.has(nameOf(read, each)));
    const isFetching = own.length + numbers.length > 0;
    const plan = hint === undefined || !isFetching ? undefined : this.#planPrefetch(block.hash, hint);
    const further = [...numbers.map(blockHashCall), ...(plan?.calls ?? [])];
    if (isFetching) {
      onRead?.(own.flatMap(({ keys }) => keys).length + further.length);
    }
    const outcomes = await this.#fetchParts(read, missing, further);
    this.#options.onFetch?.(numbers.length);
    for (const [index, number] of numbers.entries()) {
      const hash = parseBlockHash(outcomes[index]);
      this.#blockHashes.set(`${name}#${number}`, hash);
      blockHashes.set(number, hash);
    }
    if (plan !== undefined) {
      await this.#addPredicted(read, plan.read(outcomes.slice(numbers.length)));
    }
  }

  /** Fetches in turns. Returns the outcomes of further calls, which are sent with the first part. */
  async #fetchParts(
    read: RunningRead,
    missing: readonly Wanted[],
    further: readonly Call[],
  ): Promise<readonly unknown[]> {
    const { signal, takeTurn } = read;
    let hasFailed = false;
    const fetchPart = async (part: readonly Wanted[], index: number): Promise<readonly unknown[]> => {
      signal.throwIfAborted();
      try {
        return hasFailed ? [] : await this.#fetchPart(read, part, index === 0 ? further : []);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    };
    if (missing.length + further.length === 0) {
      return [];
    }
    const parts = takeTurn === undefined || missing.length === 0 ? [missing] : partsOf(missing);
    const run = takeTurn ?? atOnce;
    const [outcomes = []] = await Promise.all(parts.map((part, index) => run(() => fetchPart(part, index))));
    return outcomes;
  }

  /** Fetches what is neither stored nor in flight, and waits for what is in flight. Returns the outcomes of further calls. */
  async #fetchPart(read: RunningRead, part: readonly Wanted[], further: readonly Call[]): Promise<readonly unknown[]> {
    // Another read may have stored them before the turn of this one.
    const missing = read.takeTurn === undefined ? part : part.filter((each) => !this.#takeStored(read, each));
    const shared = missing.flatMap((each) => {
      const fetched = this.#inFlight.get(nameOf(read, each));
      return fetched === undefined ? [] : [{ wanted: each, fetched }];
    });
    const others = new Set(shared.map(({ wanted }) => wanted));
    const outcomes = await this.#fetch(
      read,
      missing.filter((each) => !others.has(each)),
      further,
    );
    const failed: Wanted[] = [];
    for (const { wanted, fetched } of shared) {
      const name = nameOf(read, wanted);
      const found = (await fetched).get(name);
      if (found === undefined) {
        failed.push(wanted);
      } else {
        read.found.push(found);
      }
    }
    await this.#fetch(read, failed, []);
    return outcomes;
  }

  /** Fetches and stores values in one batch. Other reads of them wait. Returns the outcomes of further calls. */
  async #fetch(read: RunningRead, wanted: readonly Wanted[], further: readonly Call[]): Promise<readonly unknown[]> {
    if (wanted.length + further.length === 0) {
      return [];
    }
    const { promise, resolve } = Promise.withResolvers<ReadonlyMap<string, Found>>();
    const results = new Map<string, Found>();
    for (const each of wanted) {
      this.#inFlight.set(nameOf(read, each), promise);
    }
    try {
      this.#options.onFetch?.(wanted.length);
      const keys = wanted.flatMap((each) => each.keys);
      const fetched = await this.#options.fetch(keys, further, read.block);
      read.onSpent?.(fetched.units);
      for (const each of wanted) {
        const found = foundIn(fetched, each);
        results.set(nameOf(read, each), found);
        this.#enter(read, found, fetched.node);
      }
      return fetched.outcomes;
    } finally {
      for (const each of wanted) {
        this.#inFlight.delete(nameOf(read, each));
      }
      resolve(results);
    }
  }

  /** Stores traced values and fetches listed keys. The execution gets both. */
  async #addPredicted(read: RunningRead, { traced, listed }: PredictedKeys): Promise<void> {
    const found = traced.flatMap(foundInTrace);
    // A trace is used only if it agrees with the values of other requests. The sender is always known, or among those.
    const { values } = await findKnown(keysOf(found), read);
    if (contradicts(values, stateValuesOf(found)) || found.some((each) => this.#isContradicted(read, each))) {
      return;
    }
    const names = new Set(read.found.map((each) => nameOf(read, each)));
    const isNew = (each: Wanted): boolean => !names.has(nameOf(read, each));
    for (const each of found.filter(isNew)) {
      this.#enter(read, each, undefined);
    }
    // The execution reads known values without a node.
    const { missing } = await findKnown(listed, read);
    await this.#complete({ ...read, hint: undefined }, wantedOf(missing).filter(isNew), []);
  }

  #isContradicted(read: RunningRead, { keys, values }: Found): boolean {
    const stored = keys.map((key) => read.store.unfollowed.read(key, read.version));
    return stored.some((value, index) => value !== undefined && value !== values[index]);
  }

  /** Takes values from the store for the execution. Returns false if one is missing. */
  #takeStored(read: RunningRead, wanted: Wanted): boolean {
    const { store, version, found } = read;
    const values: string[] = [];
    for (const key of wanted.keys) {
      const value = store.unfollowed.read(key, version);
      if (value === undefined) {
        return false;
      }
      values.push(value);
    }
    const code = wanted.slot === undefined ? store.code(values.at(-1) ?? "") : undefined;
    if (wanted.slot === undefined && code === undefined) {
      return false;
    }
    found.push({ address: wanted.address, slot: wanted.slot, keys: wanted.keys, values, code });
    return true;
  }

  #enter(read: RunningRead, each: Found, node: string | undefined): void {
    const { store, version, found } = read;
    const { keys, values, code } = each;
    if (code !== undefined) {
      store.storeCode(code, `0x${values.at(-1) ?? ""}`);
    }
    for (const [index, key] of keys.entries()) {
      store.unfollowed.enter(key, version, values[index] ?? "", node);
    }
    found.push(each);
  }
}

const atOnce: TakeTurn = (task) => task();

const nameOf = ({ name }: RunningRead, { address, slot }: Wanted): string => name + address + (slot ?? "");

const NO_VALUES: StateValues = { accounts: [], codes: [], slots: [], blockHashes: [] };

const findKnown = (keys: StateKeys, { known }: StateUse): Awaitable<FoundState> =>
  known?.find(keys) ?? { values: NO_VALUES, missing: keys };
