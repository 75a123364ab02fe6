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
}

/** Called with the number of values before a source reads them from nodes. Throws if they are too many. */
export type OnStateRead = (values: number) => void;

/** A state key with the calls that read it. */
interface KeyRequest {
  readonly key: string;
  readonly calls: readonly Call[];
  /** Parses the outcomes of `calls` and caches the value. Throws if an outcome is an error or has another form. */
  readonly store: (outcomes: readonly unknown[]) => void;
}

interface ReadOptions extends StateUse {
  readonly hint: PrefetchHint | undefined;
}

const MAX_BLOCKS = 10_000;
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
    let unused = hint;
    return {
      id: use.known?.id ?? hash,
      // Only the first read sends the prefetch hint.
      read: (keys) => {
        const current = unused;
        unused = undefined;
        return this.#read(hash, keys, { ...use, hint: current });
      },
    };
  }

  async #read(block: Hash, keys: StateKeys, options: ReadOptions): Promise<StateValues> {
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
    const fetched = this.#cache.collect(block, {
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

  /** Fetches keys that are neither cached nor in flight, in one batch. Returns the keys that a prefetch cached in addition. */
  async #fetchMissing(block: Hash, keys: StateKeys, options: ReadOptions): Promise<StateKeys> {
    const missing = this.#requestsFor(block, keys).filter(({ key }) => !this.#cache.has(key));
    const shared = missing.flatMap(({ key }) => this.#inFlight.get(key) ?? []);
    const own = missing.filter(({ key }) => !this.#inFlight.has(key));
    let predicted = NO_KEYS;
    if (own.length > 0) {
      options.onRead?.(own.length);
      const fetched = this.#fetch(block, own, options);
      const ended = fetched.then(
        () => undefined,
        () => undefined,
      );
      for (const { key } of own) {
        this.#inFlight.set(key, ended);
      }
      try {
        predicted = await fetched;
      } finally {
        for (const { key } of own) {
          this.#inFlight.delete(key);
        }
      }
    }
    await Promise.all(shared);
    return predicted;
  }

  async #fetch(block: Hash, requests: readonly KeyRequest[], options: ReadOptions): Promise<StateKeys> {
    const { hint } = options;
    const plan = hint === undefined ? undefined : this.#planPrefetch(block, hint);
    const calls = [...requests.flatMap((request) => request.calls), ...(plan?.calls ?? [])];
    this.#options.onFetch?.(requests.length);
    const outcomes = await this.#options.fetch(calls, { hash: block, number: this.#numbers.get(block) ?? 0n });
    let at = 0;
    for (const { calls: own, store } of requests) {
      store(outcomes.slice(at, at + own.length));
      at += own.length;
    }
    return plan === undefined ? NO_KEYS : this.#storePredicted(block, plan.read(outcomes.slice(at)), options);
  }

  /** Caches traced values and fetches listed keys. Returns the keys of both. */
  async #storePredicted(block: Hash, { traced, listed: all }: PredictedKeys, options: ReadOptions): Promise<StateKeys> {
    // A trace is used only if it agrees with the values of other requests. The sender is always known, or among those.
    const { values } = await findKnown(keysOfTrace(traced), options);
    if (contradicts(values, traced) || traced.some((account) => this.#cache.contradicts(block, account))) {
      return NO_KEYS;
    }
    for (const account of traced) {
      this.#cache.setAccount(block, account.address, account);
      for (const [slot, value] of account.slots) {
        this.#cache.setSlot(block, account.address, slot, value);
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

  #requestsFor(block: Hash, keys: StateKeys): KeyRequest[] {
    const cache = this.#cache;
    return [
      ...keys.accounts.map((address) => ({
        key: accountKey(block, address),
        calls: accountCalls(block, address),
        store: (outcomes: readonly unknown[]) =>
          cache.setAccount(block, address, parseAccount(outcomes.map(valueOrThrow))),
      })),
      ...keys.slots.map(([address, slot]) => ({
        key: slotKey(block, address, slot),
        calls: [slotCall(block, address, slot)],
        store: ([outcome]: readonly unknown[]) => cache.setSlot(block, address, slot, parseSlot(valueOrThrow(outcome))),
      })),
      ...keys.blockHashes.map((number) => ({
        key: hashKey(block, number),
        calls: [blockHashCall(number)],
        store: ([outcome]: readonly unknown[]) =>
          cache.setBlockHash(block, number, parseBlockHash(valueOrThrow(outcome))),
      })),
    ];
  }
}

/** Creates the state of sealed blocks. Reads reject with a node's error and do not cache it. Equal reads in flight are coalesced. */
export const createNodeState = (options: NodeStateOptions): NodeState => new CachedNodeState(options);

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
