import type { StateChanges } from "../core/stateReader.ts";
import type { Data } from "../ethereum/hex.ts";
import type { BlockContent } from "../state/sources/blockContent.ts";
import type { PartialExecution } from "../state/sources/feedSource.ts";
import type { WriteSetFailure } from "../state/writeSet.ts";
import { writeSetFailureOf } from "./executionFailure.ts";
import type { ExecutionPipeline } from "./executionPipeline.ts";
import type { ReconcileOptions } from "./reconcile.ts";
import type { DifferingBlock } from "./sealedExecutions.ts";

/** One message of the feed that was executed. */
interface ExecutedPart {
  readonly job: number;
  readonly transactions: readonly Data[];
  readonly changes: StateChanges;
}

const isSame = (one: Data | undefined, other: Data): boolean => one?.toLowerCase() === other.toLowerCase();

/** Returns the messages whose transactions begin the sealed block. */
const commonParts = (parts: readonly ExecutedPart[], transactions: readonly Data[]): readonly ExecutedPart[] => {
  let count = 0;
  const differing = parts.findIndex((part) => {
    const first = count;
    count += part.transactions.length;
    return !part.transactions.every((raw, position) => isSame(transactions[first + position], raw));
  });
  return differing < 0 ? parts : parts.slice(0, differing);
};

/** Returns the executed messages of the pending block, up to the first whose state is not verified. */
const executedParts = ({ pending }: DifferingBlock, pipeline: Pick<ExecutionPipeline, "jobOf">): ExecutedPart[] => {
  const parts: ExecutedPart[] = [];
  for (const { message, changes } of pending.parts) {
    const job = pipeline.jobOf(message);
    if (job === undefined || changes === undefined) {
      break;
    }
    parts.push({ job, transactions: message.diff.transactions, changes });
  }
  return parts;
};

/**
 * Returns the execution of a sealed block that has other transactions at its end than the feed brought. The messages are not
 * executed again. Must be called before the base changes. Gas, bloom and receipts root of the whole block are checked.
 */
export const createPartialExecution = (
  differing: DifferingBlock,
  pipeline: Pick<ExecutionPipeline, "jobOf" | "executeRest">,
  { skipsReceiptsRoot }: ReconcileOptions,
): PartialExecution => {
  const { environment } = differing.pending;
  const { number, hash } = differing.sealed;
  const parts = executedParts(differing, pipeline);
  const complete = async (content: BlockContent): Promise<readonly StateChanges[] | WriteSetFailure> => {
    const common = commonParts(parts, content.transactions);
    const last = common.at(-1);
    if (last === undefined) {
      return "incomplete";
    }
    const { gasUsed, logsBloom, receiptsRoot } = content;
    const { outcome, unverified } = await pipeline.executeRest({
      before: last.job,
      environment,
      index: common.length,
      transactions: content.transactions.slice(common.reduce((sum, { transactions }) => sum + transactions.length, 0)),
      accessList: [],
      hasPostExec: false,
      expected: { gasUsed, logsBloom, receiptsRoot: skipsReceiptsRoot ? undefined : receiptsRoot },
    });
    return outcome === undefined
      ? writeSetFailureOf(unverified)
      : [...common.map(({ changes }) => changes), outcome.changes];
  };
  return { block: { number, hash }, complete };
};
