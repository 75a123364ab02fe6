import { LRUCache } from "lru-cache";
import type { BlockId } from "../../core/heads.ts";
import type { StateKeys, StateSource, StateValues } from "../../core/stateReader.ts";
import type { Hash } from "../../ethereum/hex.ts";
import type { Call } from "../../jsonrpc/call.ts";
import { keyName, type StateKey } from "../stateKey.ts";
import type { Version } from "../store/unfollowedValues.ts";
import type { ValueStore } from "../store/valueStore.ts";
import {
  type FoundValue,
  foundValue,
  type KnownBlockState,
  partsOf,
  singleKeys,
  stateValuesOf,
} from "./foundValues.ts";
import { createPrefetch, type PredictedState, type PrefetchHint } from "./prefetch.ts";
import type { FetchedValues, StateFetcher } from "./stateFetcher.ts";
import { blockHashCall, parseBlockHash } from "./stateRequests.ts";

export interface StateOfNodesOptions {
  readonly fetcher: Pick<StateFetcher, "fetch">;
  /** Returns the store of the chain. Another chain may take it over. */
  readonly store: () => ValueStore;
  /** Begins a fetch. Returns the function that makes its values known. */
  readonly beginFetch?: (block: BlockId) => ((fetched: FetchedValues) => void) | undefined;
  /** Returns block hashes that need no request. */
  readonly hashOf?: (number: bigint) => Hash | undefined;
  /** Returns a name that changes when stored values must be read again. Default: they are valid until they are evicted. */
  readonly epoch?: () => string;
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
  readonly found: Map<string, FoundValue>;
  readonly blockHashes: Map<bigint, Hash>;
}

/** A fetch that other reads wait for. */
interface InFlight {
  /** What its read has found. */
  readonly found: RunningRead["found"];
  /** Never rejects. */
  readonly ended: Promise<void>;
}

/** Reads state at sealed blocks: known values, then those of the store, then nodes. Equal reads in flight are coalesced. */
export class StateOfNodes {
  readonly #options: StateOfNodesOptions;
  readonly #blockHashes = new LRUCache<string, Hash>({ max: MAX_BLOCK_HASHES });
  /** The read that fetches a value, by the name of the value. */
  readonly #inFlight = new Map<string, InFlight>();
  readonly #planPrefetch = createPrefetch();

  constructor(options: StateOfNodesOptions) {
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
        const own = { found: new Map(), blockHashes: new Map() };
        return this.#read({ ...use, ...own, block, name, store, version, hint: current, signal }, keys);
      },
    };
  }

  async #read(read: RunningRead, keys: StateKeys): Promise<StateValues> {
    const missing = await takeKnown(read, singleKeys(keys));
    await this.#complete(read, missing, this.#findBlockHashes(read, keys.blockHashes));
    return { ...stateValuesOf(read.found), blockHashes: [...read.blockHashes] };
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
  async #complete(read: RunningRead, keys: readonly StateKey[], numbers: readonly bigint[]): Promise<void> {
    const { block, name, blockHashes, hint, onRead } = read;
    const missing = keys.filter((key) => !this.#takeStored(read, key));
    const own = missing.filter((key) => !this.#inFlight.has(nameOf(read, key)));
    const isFetching = own.length + numbers.length > 0;
    const plan = hint === undefined || !isFetching ? undefined : this.#planPrefetch(block.hash, hint);
    const further = [...numbers.map(blockHashCall), ...(plan?.calls ?? [])];
    if (isFetching) {
      onRead?.(own.length + further.length);
    }
    const outcomes = await this.#fetchParts(read, missing, further);
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
    missing: readonly StateKey[],
    further: readonly Call[],
  ): Promise<readonly unknown[]> {
    const { signal, takeTurn } = read;
    let hasFailed = false;
    const fetchPart = async (part: readonly StateKey[], index: number): Promise<readonly unknown[]> => {
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
  async #fetchPart(
    read: RunningRead,
    part: readonly StateKey[],
    further: readonly Call[],
  ): Promise<readonly unknown[]> {
    // Another read may have stored them before the turn of this one.
    const missing = read.takeTurn === undefined ? part : part.filter((key) => !this.#takeStored(read, key));
    const shared = missing.flatMap((key) => {
      const fetch = this.#inFlight.get(nameOf(read, key));
      return fetch === undefined ? [] : [{ key, fetch }];
    });
    const own = missing.filter((key) => !this.#inFlight.has(nameOf(read, key)));
    const outcomes = await this.#fetch(read, own, further);
    const failed: StateKey[] = [];
    for (const { key, fetch } of shared) {
      await fetch.ended;
      const found = fetch.found.get(keyName(key));
      if (found === undefined) {
        failed.push(key);
      } else {
        read.found.set(keyName(key), found);
      }
    }
    await this.#fetch(read, failed, []);
    return outcomes;
  }

  /** Fetches and stores values in one batch. Other reads of them wait. Returns the outcomes of further calls. */
  async #fetch(read: RunningRead, keys: readonly StateKey[], further: readonly Call[]): Promise<readonly unknown[]> {
    if (keys.length + further.length === 0) {
      return [];
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const key of keys) {
      this.#inFlight.set(nameOf(read, key), { found: read.found, ended: promise });
    }
    try {
      return await this.#fetchOwn(read, keys, further);
    } finally {
      for (const key of keys) {
        this.#inFlight.delete(nameOf(read, key));
      }
      resolve();
    }
  }

  /** Takes values from nodes. The execution gets them, and they are stored. */
  async #fetchOwn(read: RunningRead, keys: readonly StateKey[], further: readonly Call[]): Promise<readonly unknown[]> {
    const { block, onSpent } = read;
    const { fetcher, beginFetch } = this.#options;
    const onFetched = beginFetch?.(block);
    const fetched = await fetcher.fetch(keys, block, further);
    onFetched?.(fetched);
    onSpent?.(fetched.units);
    for (const key of keys) {
      const value = fetched.values.get(key);
      if (value === undefined) {
        throw fetched.errors.get(key) ?? new Error(`no value of ${key.field} was fetched`);
      }
      const code = key.field === "code" ? fetched.codes.get(value) : undefined;
      this.#enter(read, { key, value, code });
    }
    return fetched.outcomes;
  }

  /** Stores traced values and fetches listed keys. The execution gets both. */
  async #addPredicted(read: RunningRead, { traced, listed }: PredictedState): Promise<void> {
    const { store, version, found } = read;
    const knownValue = (key: StateKey) => found.get(keyName(key))?.value ?? store.unfollowed.read(key, version);
    await takeKnown(
      read,
      traced.map(({ key }) => key),
    );
    // A trace is used only if it agrees with the values of other requests. The sender is always known, or among those.
    if (traced.some(({ key, value }) => (knownValue(key) ?? value) !== value)) {
      return;
    }
    for (const each of traced) {
      if (!found.has(keyName(each.key))) {
        this.#enter(read, each);
      }
    }
    // The execution reads known values without a node.
    await this.#complete({ ...read, hint: undefined }, await takeKnown(read, listed), []);
  }

  /** Takes a value from the store for the execution. Returns false if it is missing. */
  #takeStored({ store, version, found }: RunningRead, key: StateKey): boolean {
    const stored = foundValue(key, store.unfollowed.read(key, version), store);
    if (stored !== undefined) {
      found.set(keyName(key), stored);
    }
    return stored !== undefined;
  }

  #enter({ store, version, found }: RunningRead, each: FoundValue): void {
    const { key, value, code } = each;
    if (code !== undefined) {
      store.storeCode(code, value);
    }
    store.unfollowed.enter(key, version, value);
    found.set(keyName(key), each);
  }
}

const atOnce: TakeTurn = (task) => task();

const nameOf = ({ name }: RunningRead, key: StateKey): string => name + keyName(key);

/** Takes known values for the execution. Returns the keys whose values it does not have. */
const takeKnown = async ({ known, found }: RunningRead, keys: readonly StateKey[]): Promise<readonly StateKey[]> => {
  for (const each of (await known?.find(keys)) ?? []) {
    found.set(keyName(each.key), each);
  }
  return keys.filter((key) => !found.has(keyName(key)));
};
