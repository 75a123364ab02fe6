import { LRUCache } from "lru-cache";
import {
  NO_KEYS,
  NO_VALUES,
  type PlainCall,
  type StateChanges,
  type StateKeys,
  type StateReader,
  type StateValues,
} from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import type { Address } from "../ethereum/hex.ts";
import type { CachedState } from "../evm/reads/cachedState.ts";
import type { FetchingContext } from "../evm/reads/complete.ts";
import type { GuessedValues } from "../evm/reads/guesses.ts";
import type { MissingState } from "../evm/reads/missingState.ts";
import { mergeChanges } from "../evm/reads/writtenState.ts";
import type { Executed, MessageBase } from "./executableMessage.ts";
import { type Implementations, predictKeys } from "./expectedKeys.ts";
import { findAccount, findSlot } from "./stateLayers.ts";

/** The result of one fetch, as numbers of values. */
interface StateFetchResult {
  readonly requested: number;
  /** Further values that a node returned because the calls of the hint read them. */
  readonly traced: number;
  /** Keys that are likely to be read next. */
  readonly predicted: StateKeys;
}

const MAX_IMPLEMENTATIONS = 10_000;
/** Above this number all values are discarded. */
const MAX_KNOWN_VALUES = 200_000;

/** The known values at a base block, and above it one version for each executed message, with the message before it as its parent. */
export class ExecutedChain {
  readonly #implementations: Implementations = new LRUCache<Address, Address>({ max: MAX_IMPLEMENTATIONS });
  readonly #versions = new Map<number, ExecutedMessage>();
  #base: MessageBase | undefined;
  #known: CachedState;
  /** The base includes the versions up to this id. */
  #sealedThrough = 0;

  /** `known`: a state without values. */
  constructor(known: CachedState) {
    this.#known = known;
  }

  /** Moves to the base of the next message. `empty`: a state without values, in case that none of before holds. */
  moveTo(base: MessageBase, empty: CachedState): void {
    if (base.beginning !== this.#base?.beginning) {
      this.#versions.clear();
      this.#sealedThrough = base.through ?? 0;
      this.#known = empty;
    } else if (base.through !== undefined && base.block.hash !== this.#base.block.hash) {
      this.#seal(base.through, empty);
    }
    this.#base = base;
  }

  add(version: ExecutedMessage): void {
    this.#versions.set(version.id, version);
    const changes = [...(version.layer?.values() ?? [])];
    const codes = changes.flatMap(({ account, code }) => (account && code ? [[account.codeHash, code] as const] : []));
    this.#known.add({ ...NO_VALUES, codes });
  }

  /** Returns the versions from this one down to the base. Throws if one is unknown, because this thread may have replaced another. */
  ancestors(from: number | undefined): readonly ExecutedMessage[] {
    const ancestors: ExecutedMessage[] = [];
    for (let id = from; id !== undefined && id > this.#sealedThrough; id = ancestors.at(-1)?.before) {
      const version = this.#versions.get(id);
      if (!version) {
        throw new Error("the message that this one starts from was not executed in this thread");
      }
      ancestors.push(version);
    }
    return ancestors;
  }

  /** Reads state from the layers, newest first, then from the base. Unknown values are recorded in `missing`, and guessed. */
  reader(layers: readonly StateChanges[], missing: MissingState, guesses?: GuessedValues): StateReader {
    const base = this.#known.reader(missing, guesses);
    return {
      account: (address) => {
        const written = findAccount(layers, address);
        return written ? written.account : base.account(address);
      },
      code: (hash, address) => {
        const cached = this.#known.code(hash);
        const written = cached === undefined ? findAccount(layers, address) : undefined;
        return cached ?? (written?.account?.codeHash === hash ? written.code : undefined) ?? base.code(hash, address);
      },
      storage: (address, slot) => findSlot(layers, address, slot) ?? base.storage(address, slot),
      blockHash: base.blockHash,
    };
  }

  /** Enters values at the base. */
  enter(values: StateValues): void {
    this.#known.add(values);
  }

  /** Fetches the keys whose values at the base are not known. */
  async fetch(
    keys: StateKeys,
    calls: readonly PlainCall[],
    fetch: FetchingContext["fetch"],
  ): Promise<StateFetchResult> {
    const known = this.#known;
    const missing = known.uncached(keys);
    const requested = missing.accounts.length + missing.slots.length + missing.blockHashes.length;
    if (requested === 0) {
      return { requested, traced: 0, predicted: NO_KEYS };
    }
    const values = await fetch(missing, calls.length > 0 ? calls : undefined);
    known.add(values);
    const traced = values.accounts.length + values.slots.length + values.blockHashes.length - requested;
    return { requested, traced, predicted: predictKeys(values, (hash) => known.code(hash), this.#implementations) };
  }

  /**
   * The state after the version `through` is that of the next base. Versions above it stay, and so do the known values, together with
   * what was written up to it. They are discarded if its state is not known. No known slot is cleared: a feed's blocks are of Cancun
   * or later (EIP-6780).
   */
  #seal(through: number, empty: CachedState): void {
    const layers = this.#versions.has(through) ? layersOf(this.ancestors(through)) : undefined;
    const written = [...mergeChanges(layers?.toReversed() ?? [])];
    if (!layers || this.#known.size > MAX_KNOWN_VALUES) {
      this.#known = empty;
    }
    this.enter({
      ...NO_VALUES,
      accounts: written.map(([address, { account }]) => [address, account]),
      slots: written.flatMap(([address, { slots }]) =>
        [...slots].map(([slot, value]) => [address, slot, value] as const),
      ),
    });
    this.#sealedThrough = through;
    for (const id of this.#versions.keys()) {
      if (id <= through) {
        this.#versions.delete(id);
      }
    }
  }
}

/** Returns the layers of versions in the same order, or `undefined` if one is unknown. */
export const layersOf = (versions: readonly ExecutedMessage[]): readonly StateChanges[] | undefined => {
  const layers = versions.flatMap(({ layer }) => layer ?? []);
  return layers.length === versions.length ? layers : undefined;
};

/** An executed message, and its block up to it. The next message starts from it. */
export interface ExecutedMessage {
  readonly id: number;
  /** The message before it. It may be part of the base. */
  readonly before: number | undefined;
  readonly environment: PendingEnvironment;
  readonly raws: readonly Uint8Array[];
  /** With their refunds. Empty if the state after it is not known. */
  readonly transactions: readonly Executed[];
  /** Undefined if the state after it is not known. No message can be executed after it then. */
  readonly layer: StateChanges | undefined;
}
