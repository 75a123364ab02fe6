import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { createBloom, orBloom } from "../ethereum/bloom.ts";
import { formatData } from "../ethereum/hex.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt, type Receipt } from "../ethereum/receipt.ts";
import type { FlashblockJob, UnverifiedReason } from "./execution.ts";

/** The jobs that were executed above the base block. */
export class ExecutedJobs {
  readonly #executed = new Map<number, ExecutedFlashblock>();
  /** The base includes the jobs up to this id. */
  #passedThrough = 0;

  /** Returns a copy that later changes do not affect. */
  fork(): ExecutedJobs {
    const fork = new ExecutedJobs();
    fork.#passedThrough = this.#passedThrough;
    for (const [id, executed] of this.#executed) {
      fork.#executed.set(id, executed);
    }
    return fork;
  }

  has(id: number): boolean {
    return this.#executed.has(id);
  }

  add(executed: ExecutedFlashblock): void {
    this.#executed.set(executed.id, executed);
  }

  /** Returns the jobs from this one down to the base. Throws if one is unknown, because this thread may have replaced another. */
  ancestors(from: number | undefined): readonly ExecutedFlashblock[] {
    const ancestors: ExecutedFlashblock[] = [];
    for (let id = from; id !== undefined && id > this.#passedThrough; id = ancestors.at(-1)?.before) {
      const executed = this.#executed.get(id);
      if (!executed) {
        throw new Error("the job that this one starts from was not executed in this thread");
      }
      ancestors.push(executed);
    }
    return ancestors;
  }

  /** Returns the layers of all jobs, newest first, or no layer if one is unknown. */
  layers(): readonly StateChanges[] {
    return layersOf([...this.#executed.values()].reverse()) ?? [];
  }

  /** The base block changed. `through`: the last job that it includes; `undefined` discards all jobs. */
  rebase(through: number | undefined): void {
    this.#passedThrough = through ?? this.#passedThrough;
    for (const id of this.#executed.keys()) {
      if (through === undefined || id <= through) {
        this.#executed.delete(id);
      }
    }
  }
}

/** Returns the layers of jobs in the same order, or `undefined` if one is unknown. */
export const layersOf = (jobs: readonly ExecutedFlashblock[]): readonly StateChanges[] | undefined => {
  const layers = jobs.flatMap(({ layer }) => layer ?? []);
  return layers.length === jobs.length ? layers : undefined;
};

/** An executed job. The next job starts from it. */
export interface ExecutedFlashblock {
  readonly id: number;
  /** The job before it. It may be part of the base. */
  readonly before: number | undefined;
  readonly environment: PendingEnvironment;
  readonly raws: readonly Uint8Array[];
  readonly encodedReceipts: readonly Uint8Array[];
  readonly bloom: Uint8Array;
  readonly gasUsed: bigint;
  /** Undefined if the state after it is not known. No job can be executed after it then. */
  readonly layer: StateChanges | undefined;
}

/** Appends transactions and receipts to those of `before`, if it belongs to the same block. */
export const appendExecuted = (
  job: FlashblockJob,
  before: ExecutedFlashblock | undefined,
  raws: readonly Uint8Array[],
  receipts: readonly Receipt[],
): ExecutedFlashblock => {
  const earlier = job.index === 0 ? undefined : before;
  const bloom = Uint8Array.from(earlier?.bloom ?? createBloom());
  for (const { logsBloom } of receipts) {
    orBloom(bloom, logsBloom);
  }
  return {
    id: job.id,
    before: job.before,
    environment: job.environment,
    raws: [...(earlier?.raws ?? []), ...raws],
    encodedReceipts: [...(earlier?.encodedReceipts ?? []), ...receipts.map(encodeReceipt)],
    bloom,
    gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? earlier?.gasUsed ?? 0n,
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
  return receiptsRoot === undefined || orderedTrieRoot(executed.encodedReceipts, leaves) === receiptsRoot
    ? undefined
    : "receiptsRoot";
};
