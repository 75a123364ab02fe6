import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { createBloom, orBloom } from "../ethereum/bloom.ts";
import { formatData } from "../ethereum/hex.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt, type Receipt } from "../ethereum/receipt.ts";
import type { FlashblockJob, UnverifiedReason } from "./execution.ts";

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
