import { LRUCache } from "lru-cache";
import type { BlockId } from "../core/heads.ts";
import type { StateKeys, StateValues } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import { createKnownState, type KnownState } from "../evm/knownState.ts";
import { createMissingState } from "../evm/missingState.ts";
import type { PlainCall } from "../evm/stateCalls.ts";
import { predictKeys } from "./predictKeys.ts";
import { type Layer, type LayerEntry, mergeLayers } from "./stateLayers.ts";

/** State at that sealed block. `wish`: calls that are about to run, for nodes that can report what they read. */
export type FetchState = (base: BlockId, keys: StateKeys, wish?: readonly PlainCall[]) => Promise<StateValues>;

export interface BaseStateOptions {
  readonly fetch: FetchState;
  readonly codes: { get(hash: Hash): Uint8Array | undefined; set(hash: Hash, code: Uint8Array): unknown };
  readonly isNative: (address: Address) => boolean;
}

const MAX_IMPLEMENTATIONS = 10_000;
const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };

/** What one fetch brought: numbers of values. */
export interface Fetched {
  readonly asked: number;
  /** Also fetched, because a node reported that calls read them. */
  readonly foreseen: number;
  /** What is likely to be read next. */
  readonly predicted: StateKeys;
}

/** Values are counted as often as they were set; then all are fetched again. */
const MAX_KNOWN_VALUES = 2_000_000;

/** The known values at the base block. They move to the next block with what was written above. */
export class BaseState {
  readonly #options: BaseStateOptions;
  #base: BlockId;
  #known: KnownState;
  readonly #implementations = new LRUCache<Address, Address>({ max: MAX_IMPLEMENTATIONS });

  constructor(options: BaseStateOptions, base: BlockId) {
    this.#options = options;
    this.#base = base;
    this.#known = createKnownState(options);
  }

  get known(): KnownState {
    return this.#known;
  }

  /** Fetches those of the keys that are not known. */
  async fetch(keys: StateKeys, wish: readonly PlainCall[]): Promise<Fetched> {
    const base = this.#base;
    const lacking = this.#known.lacking(keys);
    const asked = lacking.accounts.length + lacking.slots.length + lacking.blockHashes.length;
    if (asked === 0) return { asked, foreseen: 0, predicted: NO_KEYS };
    const values = await this.#options.fetch(base, lacking, wish.length > 0 ? wish : undefined);
    // The base may be another block by now, where any of these values may have been written. Codes do not change.
    if (base.hash === this.#base.hash) this.#known.add(values);
    else for (const [hash, code] of values.codes) this.#options.codes.set(hash, code);
    const foreseen = values.accounts.length + values.slots.length + values.blockHashes.length - asked;
    const predicted = predictKeys(values, (hash) => this.#options.codes.get(hash), this.#implementations);
    return { asked, foreseen, predicted };
  }

  /** The next block, if all that it wrote is known: oldest layer first. Unwritten values are those of the old base. */
  advance(base: BlockId, layers: readonly Layer[]): void {
    const written = [...mergeLayers(layers)];
    if (this.#known.size > MAX_KNOWN_VALUES || written.some((entry) => this.#isRemade(entry))) this.reset(base);
    this.#base = base;
    this.#known.add({
      accounts: written.map(([address, entry]) => [address, entry.written.account]),
      codes: [],
      slots: written.flatMap(([address, { slots }]) =>
        [...slots].map(([slot, value]) => [address, slot, value] as const),
      ),
      blockHashes: [],
    });
  }

  /** Another block: no value of the old base is known to hold there. */
  reset(base: BlockId): void {
    this.#base = base;
    this.#known = createKnownState(this.#options);
  }

  /** An account that was there and was created again: slots may be known with values that no longer hold. */
  #isRemade([address, { written }]: readonly [Address, LayerEntry]): boolean {
    if (!written.isCleared) return false;
    const missing = createMissingState();
    return this.#known.reader(missing).account(address) !== undefined && missing.count === 0;
  }
}
