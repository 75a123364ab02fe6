import { type BlockId, type HeaderFields, type Heads, isCanonicalIn } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { type Hash, isQuantity } from "../ethereum/hex.ts";
import type { BlockChanges, ExecutedBlock } from "../state/sources/feedSource.ts";
import { orLate } from "../state/sources/sourceNodes.ts";
import type { WriteSetFailure } from "../state/writeSet.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { BlockPart, PendingBlockState, PendingChain } from "./applyMessage.ts";
import type { ExecutionPipeline } from "./executionPipeline.ts";
import { isWhollyExecuted, type Passed, type ReconcileOptions } from "./reconcile.ts";

/** Older blocks are discarded. A follower reads a block when it is the head, or while a late execution runs. */
const MAX_BLOCKS = 32;
/** The longest wait for the comparison of a head with the pending blocks. */
const MAX_COMPARISON_MS = 100;

/** The sealed blocks that are executed from the feed. */
export class ExecutedBlocks {
  readonly #blocks = new Map<Hash, ExecutedBlock>();
  /** The newest heads that were compared with the pending blocks. */
  #heads: Heads | undefined;
  #compared = Promise.withResolvers<void>();

  /** Records a comparison of heads with the pending blocks. */
  record(heads: Heads, executed: readonly ExecutedBlock[]): void {
    for (const each of executed) {
      this.#blocks.set(each.block.hash, each);
    }
    for (const hash of [...this.#blocks.keys()].slice(0, -MAX_BLOCKS)) {
      this.#blocks.delete(hash);
    }
    this.#heads = heads;
    this.#compared.resolve();
    this.#compared = Promise.withResolvers();
  }

  /** Returns what is executed of a block. Waits until it is compared. */
  async find(block: BlockId, signal: AbortSignal): Promise<ExecutedBlock | WriteSetFailure> {
    const scope = { deadlineMs: performance.now() + MAX_COMPARISON_MS, signal };
    while (!this.#isCompared(block) && (await orLate(this.#compared.promise, scope)) !== "late") {
      // Other heads were compared.
    }
    return this.#blocks.get(block.hash) ?? (this.#isCompared(block) ? "incomplete" : "late");
  }

  #isCompared(block: BlockId): boolean {
    return isCanonicalIn(this.#heads, block);
  }
}

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

type Executions = Pick<ExecutionPipeline, "record">;

interface SealOptions extends ReconcileOptions {
  readonly pipeline: Executions;
}

/**
 * Returns the sealed blocks that equal their execution, oldest first.
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
    if (differences.length > 0) {
      break;
    }
    if (isWhollyExecuted(pending)) {
      const block = { number: sealed.number, hash: sealed.hash };
      executed.push({ block, changes: changesOf(pending, options.pipeline) });
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
