import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { createBloom, orBloom } from "../ethereum/bloom.ts";
import { formatData } from "../ethereum/hex.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { POST_EXEC_TYPE } from "../ethereum/postExec.ts";
import { encodeReceipt, type Receipt } from "../ethereum/receipt.ts";
import type { Executed, FlashblockJob, UnverifiedReason } from "./execution.ts";

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

/** Returns the receipt of the transaction that ends a block, after this gas. */
export const postExecReceipt = (cumulativeGasUsed: bigint): Receipt => ({
  type: POST_EXEC_TYPE,
  status: true,
  cumulativeGasUsed,
  logs: [],
  logsBloom: createBloom(),
});
