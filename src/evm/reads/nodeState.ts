import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { BlockId } from "../../core/heads.ts";
import type {
  FoundState,
  KnownBlockState,
  StateFetch,
  StateKeys,
  StateSource,
  StateValues,
} from "../../core/stateReader.ts";
import type { Hash } from "../../ethereum/hex.ts";
import type { Awaitable } from "../../jsonrpc/awaitable.ts";
import type { Call } from "../../jsonrpc/call.ts";
import { createPrefetch, type PredictedKeys, type PrefetchHint } from "./prefetch.ts";
import {
  accountCalls,
  blockHashCall,
  parseAccount,
  parseBlockHash,
  parseSlot,
  slotCall,
  type TracedAccount,
} from "./stateCalls.ts";
import { accountKey, hashKey, StateValueCache, slotKey } from "./stateValueCache.ts";

export interface NodeStateOptions {
  readonly fetch: StateFetch;
  /** The maximum size of cached values, in bytes. Cached codes have the same amount again. */
  readonly maxBytes: number;
  /** Returns block hashes that need no request. */
  readonly hashOf?: (number: bigint) => Hash | undefined;
  /** Returns a name that changes when cached values must be read again. Default: they are valid until they are evicted. */
  readonly epoch?: () => string;
  /** Receives the number of values of each batch. */
  readonly onFetch?: (values: number) => void;
}

/** Reads state at sealed blocks from nodes. Values are cached by the block's hash, codes by their own hash. */
export interface NodeState {
  /** `hint`: calls that will be executed at this block. Nodes that can do so predict what the calls will read. */
  at(block: BlockId, hint?: PrefetchHint, use?: StateUse): StateSource;
}

/** How one execution reads state. */
export interface StateUse {
  readonly onRead?: OnStateRead | undefined;
  /** The values that no node is asked for. Default: none. */
  readonly known?: KnownBlockState | undefined;
  /** Runs each part of a read when it is the client's turn. Default: each read is one part, and waits for no turn. */
  readonly takeTurn?: TakeTurn | undefined;
}

type TakeTurn = <Result>(task: () => Promise<Result>) => Promise<Result>;

/** Called with the number of calls to nodes before a source sends the first of them. Throws if they are too many. */
export type OnStateRead = (calls: number) => void;

/** A state key with the calls that read it. */
interface KeyRequest {
  readonly key: string;
  readonly calls: readonly Call[];
  /** Its part of MAX_PART_WEIGHT. */
  readonly weight: number;
  /** Parses the outcomes of `calls` and caches the value. Throws if an outcome is an error or has another form. */
  readonly store: (outcomes: readonly unknown[]) => void;
}

/** `scope`: the block in cache keys. Values of an earlier epoch have another one. */
interface ReadBlock {
  readonly hash: Hash;
  readonly scope: Hash;
}

interface ReadOptions extends StateUse {
  readonly hint: PrefetchHint | undefined;
  readonly signal: AbortSignal;
}

const MAX_BLOCKS = 10_000;
/** One part of a read is 500 slots, which one eth_call can read, or 100 calls of other values. */
const MAX_PART_WEIGHT = 500;
const SLOT_WEIGHT = 1;
const CALL_WEIGHT = 5;
/** Balance, nonce and code. */
const ACCOUNT_CALLS = 3;
const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };

class CachedNodeState implements NodeState {
  readonly #options: NodeStateOptions;
  readonly #cache: StateValueCache;
  readonly #numbers = new LRUCache<Hash, bigint>({ max: MAX_BLOCKS });
  /** Settles when the fetch of a key ends. Never rejects. */
  readonly #inFlight = new Map<string, Promise<void>>();
  readonly #planPrefetch = createPrefetch();

  constructor(options: NodeStateOptions) {
    this.#options = options;
    this.#cache = new StateValueCache(options.maxBytes);
  }

  at({ number, hash }: BlockId, hint?: PrefetchHint, use: StateUse = {}): StateSource {
    this.#numbers.set(hash, number);
    const epoch = this.#options.epoch?.() ?? "";
    let unused = hint;
    return {
      id: (use.known?.id ?? hash) + epoch,
      // Only the first read sends the prefetch hint.
      read: (keys, signal) => {
        const current = unused;
        unused = undefined;
        return this.#read({ hash, scope: `${hash}${epoch}` }, keys, { ...use, hint: current, signal });
      },
    };
  }

  async #read(block: ReadBlock, keys: StateKeys, options: ReadOptions): Promise<StateValues> {
    const localHashes = new Map<bigint, Hash>();
    for (const number of keys.blockHashes) {
      const hash = this.#options.hashOf?.(number);
      if (hash !== undefined) {
        localHashes.set(number, hash);
      }
    }
    const blockHashes = keys.blockHashes.filter((number) => !localHashes.has(number));
    const known = await findKnown({ ...keys, blockHashes }, options);
    const predicted = await this.#fetchMissing(block, known.missing, options);
    // All values return together. With a part of them, an execution would guess the rest and fetch the results of its guesses.
    const fetched = this.#cache.collect(block.scope, {
      accounts: [...new Set([...known.missing.accounts, ...predicted.accounts])],
      slots: [...known.missing.slots, ...predicted.slots],
      blockHashes,
    });
    if (fetched === undefined) {
      throw new Error("the state cache is too small for one round");
    }
    const { values } = known;
    return {
      accounts: [...fetched.accounts, ...values.accounts],
      codes: [...fetched.codes, ...values.codes],
      slots: [...fetched.slots, ...values.slots],
      blockHashes: [...localHashes, ...fetched.blockHashes],
    };
  }

  /** Fetches keys that are not cached. All are counted before the first call. Returns the keys that a prefetch cached in addition. */
  async #fetchMissing(block: ReadBlock, keys: StateKeys, options: ReadOptions): Promise<StateKeys> {
    const { hint, signal, onRead, takeTurn = atOnce } = options;
    const missing = this.#requestsFor(block, keys).filter(({ key }) => !this.#cache.has(key));
    const own = missing.filter(({ key }) => !this.#inFlight.has(key));
    const plan = hint === undefined || own.length === 0 ? undefined : this.#planPrefetch(block.hash, hint);
    if (own.length > 0) {
      onRead?.(callsOf(own).length + (plan?.calls.length ?? 0));
    }
    let hasFailed = false;
    const fetchPart = async (part: readonly KeyRequest[], index: number): Promise<readonly unknown[]> => {
      signal.throwIfAborted();
      try {
        return hasFailed ? [] : await this.#fetchPart(block, part, index === 0 ? (plan?.calls ?? []) : []);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    };
    const parts = options.takeTurn === undefined ? [missing] : partsOf(missing);
    const [outcomes = []] = await Promise.all(parts.map((part, index) => takeTurn(() => fetchPart(part, index))));
    return plan === undefined ? NO_KEYS : this.#storePredicted(block, plan.read(outcomes), options);
  }

  /** Fetches keys that are neither cached nor in flight, and waits for those in flight. Returns the outcomes of further calls. */
  async #fetchPart(
    block: ReadBlock,
    part: readonly KeyRequest[],
    further: readonly Call[],
  ): Promise<readonly unknown[]> {
    const missing = part.filter(({ key }) => !this.#cache.has(key));
    const shared = missing.filter(({ key }) => this.#inFlight.has(key));
    const ends = shared.map(({ key }) => this.#inFlight.get(key));
    const own = missing.filter((request) => !shared.includes(request));
    const outcomes = await this.#fetch(block, own, further);
    await Promise.all(ends);
    // The request that fetched them can have failed.
    const failed = shared.filter(({ key }) => !this.#cache.has(key));
    await this.#fetch(block, failed, []);
    return outcomes;
  }

  /** Fetches and caches keys in one batch. Other requests for them wait. Returns the outcomes of further calls. */
  async #fetch(
    block: ReadBlock,
    requests: readonly KeyRequest[],
    further: readonly Call[],
  ): Promise<readonly unknown[]> {
    if (requests.length + further.length === 0) {
      return [];
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    for (const { key } of requests) {
      this.#inFlight.set(key, ended);
    }
    try {
      this.#options.onFetch?.(requests.length);
      const calls = [...callsOf(requests), ...further];
      const { hash } = block;
      const outcomes = await this.#options.fetch(calls, { hash, number: this.#numbers.get(hash) ?? 0n });
      let at = 0;
      for (const { calls: own, store } of requests) {
        store(outcomes.slice(at, at + own.length));
        at += own.length;
      }
      return outcomes.slice(at);
    } finally {
      for (const { key } of requests) {
        this.#inFlight.delete(key);
      }
      resolve();
    }
  }

  /** Caches traced values and fetches listed keys. Returns the keys of both. */
  async #storePredicted(
    block: ReadBlock,
    { traced, listed: all }: PredictedKeys,
    options: ReadOptions,
  ): Promise<StateKeys> {
    // A trace is used only if it agrees with the values of other requests. The sender is always known, or among those.
    const { values } = await findKnown(keysOfTrace(traced), options);
    if (contradicts(values, traced) || traced.some((account) => this.#cache.contradicts(block.scope, account))) {
      return NO_KEYS;
    }
    for (const account of traced) {
      this.#cache.setAccount(block.scope, account.address, account);
      for (const [slot, value] of account.slots) {
        this.#cache.setSlot(block.scope, account.address, slot, value);
      }
    }
    // The execution reads known values without a node.
    const { missing: listed } = await findKnown(all, options);
    if (listed.accounts.length + listed.slots.length > 0) {
      await this.#fetchMissing(block, listed, { ...options, hint: undefined });
    }
    const { accounts, slots } = keysOfTrace(traced);
    return { accounts: [...accounts, ...listed.accounts], slots: [...slots, ...listed.slots], blockHashes: [] };
  }

  #requestsFor({ hash, scope }: ReadBlock, keys: StateKeys): KeyRequest[] {
    const cache = this.#cache;
    return [
      ...keys.accounts.map((address) => ({
        key: accountKey(scope, address),
        calls: accountCalls(hash, address),
        weight: ACCOUNT_CALLS * CALL_WEIGHT,
        store: (outcomes: readonly unknown[]) =>
          cache.setAccount(scope, address, parseAccount(outcomes.map(valueOrThrow))),
      })),
      ...keys.slots.map(([address, slot]) => ({
        key: slotKey(scope, address, slot),
        calls: [slotCall(hash, address, slot)],
        weight: SLOT_WEIGHT,
        store: ([outcome]: readonly unknown[]) => cache.setSlot(scope, address, slot, parseSlot(valueOrThrow(outcome))),
      })),
      ...keys.blockHashes.map((number) => ({
        key: hashKey(scope, number),
        calls: [blockHashCall(number)],
        weight: CALL_WEIGHT,
        store: ([outcome]: readonly unknown[]) =>
          cache.setBlockHash(scope, number, parseBlockHash(valueOrThrow(outcome))),
      })),
    ];
  }
}

/** Creates the state of sealed blocks. Reads reject with a node's error and do not cache it. Equal reads in flight are coalesced. */
export const createNodeState = (options: NodeStateOptions): NodeState => new CachedNodeState(options);

const atOnce: TakeTurn = (task) => task();

const callsOf = (requests: readonly KeyRequest[]): readonly Call[] => requests.flatMap(({ calls }) => calls);

/** Divides a read into parts of MAX_PART_WEIGHT. */
const partsOf = (requests: readonly KeyRequest[]): readonly (readonly KeyRequest[])[] => {
  const parts: KeyRequest[][] = [];
  let room = 0;
  for (const request of requests) {
    if (request.weight > room) {
      parts.push([]);
      room = MAX_PART_WEIGHT;
    }
    parts.at(-1)?.push(request);
    room -= request.weight;
  }
  return parts;
};

const NO_VALUES: StateValues = { accounts: [], codes: [], slots: [], blockHashes: [] };

const findKnown = (keys: StateKeys, { known }: StateUse): Awaitable<FoundState> =>
  known?.find(keys) ?? { values: NO_VALUES, missing: keys };

const keysOfTrace = (traced: readonly TracedAccount[]): StateKeys => ({
  accounts: traced.map(({ address }) => address),
  slots: traced.flatMap(({ address, slots }) => slots.map(([slot]) => [address, slot] as const)),
  blockHashes: [],
});

/** Whether a traced value differs from a known one. */
const contradicts = ({ accounts, slots }: StateValues, traced: readonly TracedAccount[]): boolean => {
  const knownAccounts = new Map(accounts);
  const knownSlots = new Map(slots.map(([address, slot, value]) => [address + slot, value]));
  const differs = <Value>(known: ReadonlyMap<string, Value>, key: string, value: Value): boolean =>
    known.has(key) && !isDeepStrictEqual(known.get(key), value);
  return traced.some(
    ({ address, account, slots: own }) =>
      differs(knownAccounts, address, account) ||
      own.some(([slot, value]) => differs(knownSlots, address + slot, value)),
  );
};

const valueOrThrow = (outcome: unknown): unknown => {
  if (outcome instanceof Error) {
    throw outcome;
  }
  return outcome;
};
