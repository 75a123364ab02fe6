import { LRUCache } from "lru-cache";
import type { BlockId } from "../core/heads.ts";
import type { AccountChange, StateChanges, StateKeys, StateValues } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import { CachedState } from "../evm/reads/cachedState.ts";
import { MissingState } from "../evm/reads/missingState.ts";
import { mergeChanges } from "../evm/reads/writtenState.ts";
import type { PlainCall } from "../state/fetch/prefetch.ts";
import { predictKeys } from "./predictKeys.ts";

/** Fetches state at a sealed block. `hint`: calls that will run soon. Some nodes can trace them and return what they read. */
export type FetchState = (base: BlockId, keys: StateKeys, hint?: readonly PlainCall[]) => Promise<StateValues>;

export interface BaseStateOptions {
  readonly fetch: FetchState;
  readonly codes: { get(hash: Hash): Uint8Array | undefined; set(hash: Hash, code: Uint8Array): unknown };
  readonly isNative: (address: Address) => boolean;
}

const MAX_IMPLEMENTATIONS = 10_000;
const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };

/** The result of one fetch, as numbers of values. */
export interface StateFetchResult {
  readonly requested: number;
  /** Further values that a node returned because the calls of the hint read them. */
  readonly traced: number;
  /** Keys that are likely to be read next. */
  readonly predicted: StateKeys;
}

/** A value counts each time it is set. Above this number all values are discarded. */
const MAX_KNOWN_VALUES = 2_000_000;

/** The cached values at the base block. They stay valid for the next block, together with the writes of that block. */
export class BaseState {
  readonly #options: BaseStateOptions;
  #base: BlockId;
  #known: CachedState;
  readonly #implementations = new LRUCache<Address, Address>({ max: MAX_IMPLEMENTATIONS });

  constructor(options: BaseStateOptions, base: BlockId) {
    this.#options = options;
    this.#base = base;
    this.#known = new CachedState(options);
  }

  get known(): CachedState {
    return this.#known;
  }

  /** Returns the same values at the same block. This one must be reset afterwards, because both would add to them. */
  fork(): BaseState {
    const fork = new BaseState(this.#options, this.#base);
    fork.#known = this.#known;
    return fork;
  }

  /** Fetches the keys whose values are not cached. */
  async fetch(keys: StateKeys, hint: readonly PlainCall[]): Promise<StateFetchResult> {
    const base = this.#base;
    const missing = this.#known.uncached(keys);
    const requested = missing.accounts.length + missing.slots.length + missing.blockHashes.length;
    if (requested === 0) {
      return { requested, traced: 0, predicted: NO_KEYS };
    }
    const values = await this.#options.fetch(base, missing, hint.length > 0 ? hint : undefined);
    // The base may be another block now, and that block may have written these values. Code does not change.
    if (base.hash === this.#base.hash) {
      this.#known.add(values);
    } else {
      for (const [hash, code] of values.codes) {
        this.#options.codes.set(hash, code);
      }
    }
    const traced = values.accounts.length + values.slots.length + values.blockHashes.length - requested;
    const predicted = predictKeys(values, (hash) => this.#options.codes.get(hash), this.#implementations);
    return { requested, traced, predicted };
  }

  /** Moves to the next block. `layers`: all writes of that block, oldest first. Other values are those of the old base. */
  advance(base: BlockId, layers: readonly StateChanges[]): void {
    const written = [...mergeChanges(layers)];
    if (this.#known.size > MAX_KNOWN_VALUES || written.some((entry) => this.#isRecreated(entry))) {
      this.reset(base);
    }
    this.#base = base;
    this.#known.add({
      accounts: written.map(([address, { account }]) => [address, account]),
      codes: [],
      slots: written.flatMap(([address, { slots }]) =>
        [...slots].map(([slot, value]) => [address, slot, value] as const),
      ),
      blockHashes: [],
    });
  }

  /** Moves to another block, and discards all values. */
  reset(base: BlockId): void {
    this.#base = base;
    this.#known = new CachedState(this.#options);
  }

  /** Whether an account that existed was created again: cached slots of it may be wrong now. */
  #isRecreated([address, { isCleared }]: readonly [Address, AccountChange]): boolean {
    if (!isCleared) {
      return false;
    }
    const missing = new MissingState();
    return this.#known.reader(missing).account(address) !== undefined && missing.count === 0;
  }
}
