import type { BlockId, HeaderFields, Heads } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { type Data, isQuantity } from "../ethereum/hex.ts";
import type { BlockContent } from "../state/sources/blockContent.ts";
import type { PartialExecution, SealedExecution } from "../state/sources/feedSource.ts";
import type { WriteSetFailure } from "../state/writeSet.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { BlockPart, PendingBlockState, PendingChain } from "./applyMessage.ts";
import { writeSetFailureOf } from "./execution.ts";
import type { ExecutionPipeline } from "./executionPipeline.ts";
import { isWhollyExecuted, type Passed, type ReconcileOptions } from "./reconcile.ts";

const isNumber = (value: unknown, expected: bigint): boolean => isQuantity(value) && BigInt(value) === expected;
const isHex = (value: unknown, expected: string): boolean =>
  typeof value === "string" && value.toLowerCase() === expected.toLowerCase();

/** Whether the sealed block has the environment that the pending block was executed in. */
const hasEnvironment = (
  header: HeaderFields,
  environment: PendingEnvironment,
  { skipsReceiptsRoot: isAnvil }: ReconcileOptions,
): boolean =>
  isNumber(header.timestamp, environment.timestamp) &&
  isNumber(header.gasLimit, environment.gasLimit) &&
  isNumber(header.baseFeePerGas, environment.baseFeePerGas) &&
  isHex(header.miner, environment.feeRecipient) &&
  // anvil seals a block with another random value than its pending block has.
  (isAnvil || isHex(header.mixHash, environment.prevRandao)) &&
  (isAbsent(header.parentBeaconBlockRoot) || isHex(header.parentBeaconBlockRoot, environment.parentBeaconBlockRoot));

interface SealedExecutions {
  /** The blocks that equal their execution, oldest first. */
  readonly executed: readonly SealedExecution[];
  /** The first other block, if it differs in its transactions alone. */
  readonly partial: PartialExecution | undefined;
}

type Executions = Pick<ExecutionPipeline, "record" | "executeRemainder">;

interface SealedExecutionsOptions extends ReconcileOptions {
  readonly pipeline: Executions;
}

const executedChanges = ({ trust, changes }: BlockPart): StateChanges | undefined =>
  trust === "executed" ? changes : undefined;

/** Returns the changes of all parts, as a promise if the execution of one is late. */
const changesOfAll = (parts: PendingBlockState["parts"], pipeline: Executions): SealedExecution["changes"] => {
  const known = parts.flatMap((part) => executedChanges(part) ?? []);
  if (known.length === parts.length) {
    return known;
  }
  return Promise.all(parts.map((part) => executedChanges(part) ?? pipeline.record(part.message)?.untilExecuted())).then(
    (all) => (all.every((each) => each !== undefined) ? all : undefined),
  );
};

/**
 * Returns the sealed blocks that equal their execution. Execution and block have one parent, whose execution equals it too.
 * Gas, bloom and receipts root do not prove storage, so an execution on another state does not count.
 * Must be called before the base changes.
 */
export const sealedExecutions = (
  { base }: PendingChain,
  heads: Heads,
  passed: readonly Passed[],
  options: SealedExecutionsOptions,
): SealedExecutions => {
  const { pipeline } = options;
  const executed: SealedExecution[] = [];
  if (passed.length === 0) {
    // The first base is block 0. A look at it would let a young chain read all its blocks.
    return { executed, partial: undefined };
  }
  let parent = heads.at(base.number);
  if (parent?.hash !== base.hash) {
    return { executed, partial: undefined };
  }
  for (const { block: pending, differences } of passed) {
    const { environment, parts } = pending;
    const sealed = heads.at(environment.number);
    const header = heads.header(environment.number);
    const isOnParent: boolean =
      parent !== undefined &&
      environment.number === parent.number + 1n &&
      environment.parentHash === parent.hash &&
      sealed?.parentHash === parent.hash;
    if (!sealed || !header || !isOnParent || !hasEnvironment(header, environment, options)) {
      break;
    }
    if (differences.length > 0) {
      const isPartial = differences.includes("transactions");
      return { executed, partial: isPartial ? createPartialExecution(sealed, pending, options) : undefined };
    }
    if (isWhollyExecuted(pending)) {
      executed.push({ block: { number: sealed.number, hash: sealed.hash }, changes: changesOfAll(parts, pipeline) });
    }
    parent = sealed;
  }
  return { executed, partial: undefined };
};

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
const executedParts = (pending: PendingBlockState, pipeline: Executions): ExecutedPart[] => {
  const parts: ExecutedPart[] = [];
  for (const part of pending.parts) {
    const { message } = part;
    const changes = executedChanges(part);
    const job = pipeline.record(message)?.job?.id;
    if (job === undefined || changes === undefined) {
      break;
    }
    parts.push({ job, transactions: message.transactions, changes });
  }
  return parts;
};

/**
 * Returns the execution of a sealed block that has other transactions at its end than the feed brought. The messages are not
 * executed again. Gas, bloom and receipts root of the whole block are checked.
 */
const createPartialExecution = (
  { number, hash }: BlockId,
  pending: PendingBlockState,
  { pipeline, skipsReceiptsRoot }: SealedExecutionsOptions,
): PartialExecution => {
  const { environment } = pending;
  const parts = executedParts(pending, pipeline);
  const complete = async (content: BlockContent): Promise<readonly StateChanges[] | WriteSetFailure> => {
    const common = commonParts(parts, content.transactions);
    const last = common.at(-1);
    if (last === undefined) {
      return "incomplete";
    }
    const { gasUsed, logsBloom, receiptsRoot } = content;
    const { outcome, unverified } = await pipeline.executeRemainder({
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
