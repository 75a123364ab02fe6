import type { HeaderFields, Heads } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { type Data, isQuantity, parseData } from "../ethereum/hex.ts";
import { parsePostExec } from "../ethereum/postExec.ts";
import type { BlockContent } from "../state/sources/blockContent.ts";
import type { BlockChanges, ExecutedBlock } from "../state/sources/executedSource.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { BlockPart, PendingBlockState, PendingChain } from "./applyMessage.ts";
import { type Execution, type FlashblockJob, isMismatch } from "./execution.ts";
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

type Executions = Pick<ExecutionPipeline, "record" | "executeRemainder">;

interface SealOptions extends ReconcileOptions {
  readonly pipeline: Executions;
}

/**
 * Returns the sealed blocks that equal their execution, oldest first, and then the first one that differs in its transactions alone.
 * Execution and block have one parent, whose execution equals it too.
 * Gas, bloom and receipts root do not prove storage, so an execution on another state does not count.
 * Must be called before the base changes.
 */
export const sealBlocks = (
  { base }: PendingChain,
  heads: Heads,
  passed: readonly Passed[],
  options: SealOptions,
): readonly ExecutedBlock[] => {
  const executed: ExecutedBlock[] = [];
  // The first base is block 0. A look at it would let a young chain read all its blocks.
  let parent = passed.length === 0 ? undefined : heads.at(base.number);
  if (parent?.hash !== base.hash) {
    return executed;
  }
  for (const { block: pending, differences } of passed) {
    const { environment } = pending;
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
    const block = { number: sealed.number, hash: sealed.hash };
    if (differences.includes("transactions")) {
      executed.push({ block, changes: completionOf(pending, options) });
    } else if (differences.length === 0 && isWhollyExecuted(pending)) {
      executed.push({ block, changes: changesOf(pending, options.pipeline) });
    }
    if (differences.length > 0) {
      break;
    }
    parent = sealed;
  }
  return executed;
};

const executedChanges = ({ trust, changes }: BlockPart): StateChanges | undefined =>
  trust === "executed" ? changes : undefined;

/** Returns the changes of all parts. The execution of one may be late. */
const changesOf = async ({ parts }: PendingBlockState, pipeline: Executions): Promise<BlockChanges> => {
  const changes = parts.map((part) => executedChanges(part) ?? pipeline.record(part.message)?.untilExecuted());
  const known = (await Promise.all(changes)).flatMap((each) => each ?? []);
  return known.length === parts.length ? known : "incomplete";
};

/** One message of the feed that was executed. */
interface ExecutedPart {
  readonly job: number;
  readonly transactions: readonly Data[];
  readonly changes: StateChanges;
}

/** Returns the executed messages of the pending block, up to the first whose state is not verified. */
const executedParts = (pending: PendingBlockState, pipeline: Executions): readonly ExecutedPart[] => {
  const parts: ExecutedPart[] = [];
  for (const part of pending.parts) {
    const job = pipeline.record(part.message)?.job?.id;
    const changes = executedChanges(part);
    if (job === undefined || changes === undefined) {
      break;
    }
    parts.push({ job, transactions: part.message.transactions, changes });
  }
  return parts;
};

const isSame = (one: Data | undefined, other: Data): boolean => one?.toLowerCase() === other.toLowerCase();
const countOf = (parts: readonly ExecutedPart[]): number =>
  parts.reduce((count, { transactions }) => count + transactions.length, 0);

/** Returns the messages whose transactions begin the sealed block. */
const commonParts = (parts: readonly ExecutedPart[], sealed: readonly Data[]): readonly ExecutedPart[] => {
  const differing = parts.findIndex(({ transactions }, position) => {
    const first = countOf(parts.slice(0, position));
    return !transactions.every((raw, index) => isSame(sealed[first + index], raw));
  });
  return differing < 0 ? parts : parts.slice(0, differing);
};

/** Returns what executes the transactions of the sealed block that the feed did not bring. The messages are not executed again. */
const completionOf = (
  pending: PendingBlockState,
  { pipeline, skipsReceiptsRoot }: SealOptions,
): ExecutedBlock["changes"] => {
  const parts = executedParts(pending, pipeline);
  const execute: ExecuteRest = (job) => pipeline.executeRemainder(job);
  return async (content) => {
    const common = commonParts(parts, content.transactions);
    return common.length === 0 ? "incomplete" : executeAfter(common, content, { skipsReceiptsRoot, execute });
  };
};

/** Returns the last transaction if it gives back gas to those before it. */
const postExecOf = (transactions: readonly Data[]): Data | undefined => {
  const last = transactions.at(-1);
  return last !== undefined && parsePostExec(parseData(last)) !== undefined ? last : undefined;
};

type ExecuteRest = (job: Omit<FlashblockJob, "id">) => Promise<Execution>;

/**
 * Executes the transactions of a sealed block after those of `parts`, or all of them. Gas, bloom and receipts root of the whole
 * block are checked.
 */
export const executeAfter = async (
  parts: readonly ExecutedPart[],
  { environment, transactions, receiptsRoot, ...expected }: BlockContent,
  { skipsReceiptsRoot, execute }: ReconcileOptions & { readonly execute: ExecuteRest },
): Promise<BlockChanges> => {
  const postExec = postExecOf(transactions);
  const { outcome, unverified } = await execute({
    before: parts.at(-1)?.job,
    environment,
    index: parts.length,
    transactions: transactions.slice(countOf(parts), postExec === undefined ? undefined : -1),
    accessList: [],
    postExec,
    expected: { ...expected, receiptsRoot: skipsReceiptsRoot ? undefined : receiptsRoot },
  });
  if (outcome === undefined) {
    return isMismatch(unverified) ? "mismatch" : "error";
  }
  return [...parts.map(({ changes }) => changes), outcome.changes];
};
