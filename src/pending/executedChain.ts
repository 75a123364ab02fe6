import { LRUCache } from "lru-cache";
import {
  type AccountChange,
  NO_KEYS,
  type PlainCall,
  type StateChanges,
  type StateKeys,
  type StateReader,
  type StateValues,
} from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { createBloom, orBloom } from "../ethereum/bloom.ts";
import { type Address, formatData } from "../ethereum/hex.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { postExecReceipt } from "../ethereum/postExec.ts";
import { encodeReceipt } from "../ethereum/receipt.ts";
import type { CachedState } from "../evm/reads/cachedState.ts";
import type { FetchingContext } from "../evm/reads/complete.ts";
import type { GuessedValues } from "../evm/reads/guesses.ts";
import { MissingState } from "../evm/reads/missingState.ts";
import { mergeChanges } from "../evm/reads/writtenState.ts";
import { type Implementations, predictKeys } from "./expectedKeys.ts";
import type { Executed, FlashblockJob, MessageBase, UnverifiedReason } from "./flashblockJob.ts";
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

/** The known values at a base block, and above it one version for each executed job, with the job before it as its parent. */
export class ExecutedChain {
  readonly #implementations: Implementations = new LRUCache<Address, Address>({ max: MAX_IMPLEMENTATIONS });
  readonly #versions = new Map<number, ExecutedFlashblock>();
  #base: MessageBase | undefined;
  #known: CachedState;
  /** The base includes the versions up to this id. */
  #sealedThrough = 0;

  /** `known`: a state without values. */
  constructor(known: CachedState) {
    this.#known = known;
  }

  /** Moves to the base of the next job. `empty`: a state without values, in case that none of before holds. */
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

  add(version: ExecutedFlashblock): void {
    this.#versions.set(version.id, version);
    const changes = [...(version.layer?.values() ?? [])];
    const codes = changes.flatMap(({ account, code }) => (account && code ? [[account.codeHash, code] as const] : []));
    this.#known.add({ ...NO_VALUES, codes });
  }

  /** Returns the versions from this one down to the base. Throws if one is unknown, because this thread may have replaced another. */
  ancestors(from: number | undefined): readonly ExecutedFlashblock[] {
    const ancestors: ExecutedFlashblock[] = [];
    for (let id = from; id !== undefined && id > this.#sealedThrough; id = ancestors.at(-1)?.before) {
      const version = this.#versions.get(id);
      if (!version) {
        throw new Error("the job that this one starts from was not executed in this thread");
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
        const written = findAccount(layers, address);
        return (written?.account?.codeHash === hash ? written.code : undefined) ?? base.code(hash, address);
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
   * what was written up to it. They are discarded if its state is not known.
   */
  #seal(through: number, empty: CachedState): void {
    const layers = this.#versions.has(through) ? layersOf(this.ancestors(through)) : undefined;
    const written = [...mergeChanges(layers?.toReversed() ?? [])];
    if (!layers || this.#known.size > MAX_KNOWN_VALUES || written.some((entry) => this.#isRecreated(entry))) {
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

  /** Whether an account that existed was created again: known slots of it may be wrong now. */
  #isRecreated([address, { isCleared }]: readonly [Address, AccountChange]): boolean {
    if (!isCleared) {
      return false;
    }
    const missing = new MissingState();
    return this.#known.reader(missing).account(address) !== undefined && missing.count === 0;
  }
}

const NO_VALUES: StateValues = { accounts: [], codes: [], slots: [], blockHashes: [] };

/** Returns the layers of versions in the same order, or `undefined` if one is unknown. */
export const layersOf = (versions: readonly ExecutedFlashblock[]): readonly StateChanges[] | undefined => {
  const layers = versions.flatMap(({ layer }) => layer ?? []);
  return layers.length === versions.length ? layers : undefined;
};

/** An executed job. The next job starts from it. */
export interface ExecutedFlashblock {
  readonly id: number;
  /** The job before it. It may be part of the base. */
  readonly before: number | undefined;
  readonly environment: PendingEnvironment;
  readonly raws: readonly Uint8Array[];
  /** All of its block so far, with their refunds. */
  readonly transactions: readonly Executed[];
  readonly encodedReceipts: readonly Uint8Array[];
  readonly bloom: Uint8Array;
  readonly gasUsed: bigint;
  /** Undefined if the state after it is not known. No job can be executed after it then. */
  readonly layer: StateChanges | undefined;
}

/** Returns the job before, if it belongs to the same block. */
export const earlierOf = (
  job: FlashblockJob,
  before: ExecutedFlashblock | undefined,
): ExecutedFlashblock | undefined => (job.index === 0 ? undefined : before);

interface AppendedTransactions {
  readonly transactions: readonly Executed[];
  /** The block's earlier transactions with the refunds of this job. Default: as they were. */
  readonly revised?: readonly Executed[];
}

/**
 * Appends transactions to those of `before`, if it belongs to the same block.
 */
export const appendExecuted = (
  job: FlashblockJob,
  before: ExecutedFlashblock | undefined,
  raws: readonly Uint8Array[],
  { transactions: executed, revised }: AppendedTransactions,
): ExecutedFlashblock => {
  const earlier = earlierOf(job, before);
  const first = revised ?? earlier?.transactions ?? [];
  const bloom = Uint8Array.from(earlier?.bloom ?? createBloom());
  for (const { receipt } of executed) {
    orBloom(bloom, receipt.logsBloom);
  }
  const transactions = [...first, ...executed];
  const encode = ({ receipt }: Executed): Uint8Array => encodeReceipt(receipt);
  const isRevised = earlier !== undefined && first !== earlier.transactions;
  return {
    id: job.id,
    before: job.before,
    environment: job.environment,
    raws: [...(earlier?.raws ?? []), ...raws],
    transactions,
    encodedReceipts: isRevised
      ? transactions.map(encode)
      : [...(earlier?.encodedReceipts ?? []), ...executed.map(encode)],
    bloom,
    gasUsed: transactions.at(-1)?.receipt.cumulativeGasUsed ?? earlier?.gasUsed ?? 0n,
    layer: undefined,
  };
};

/** Returns the first field in which the message and its execution differ, or `undefined`. */
export const findMismatch = (
  job: FlashblockJob,
  executed: Pick<ExecutedFlashblock, "gasUsed" | "bloom" | "encodedReceipts">,
  leaves: LeafCache,
): UnverifiedReason | undefined => {
  if (executed.gasUsed !== job.expected.gasUsed) {
    return "gas";
  }
  if (formatData(executed.bloom) !== job.expected.logsBloom) {
    return "bloom";
  }
  const { receiptsRoot } = job.expected;
  if (orderedTrieRoot(executed.encodedReceipts, leaves) === receiptsRoot) {
    return undefined;
  }
  // The root of a sealed block has the receipt of its last transaction. The specification does not say whether a message's has it.
  const withLast = [...executed.encodedReceipts, encodeReceipt(postExecReceipt(executed.gasUsed))];
  return job.postExec !== undefined && orderedTrieRoot(withLast, leaves) === receiptsRoot ? undefined : "receiptsRoot";
};
