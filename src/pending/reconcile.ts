import type { HeadChange, Heads } from "../core/heads.ts";
import { formatData, type Hash, isHash, isQuantity, parseData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { PendingBlockState, PendingChain } from "./applyFlashblock.ts";

/** What was compared and differed: a label of the metric. */
export type Difference = "transactions" | "gas" | "bloom" | "receiptsRoot";

/** A pending block that a head has passed. */
export interface Passed {
  readonly block: PendingBlockState;
  readonly sealedHash: Hash | undefined;
  readonly differences: readonly Difference[];
}

export type Reconciliation =
  /** Nothing was pending. */
  | "idle"
  /** The head has passed all that was pending. */
  | "caughtUp"
  /** What is left stands on the head. */
  | "continued"
  /** The block below is another one: what was pending is void. */
  | "reorganised";

export interface Reconciled {
  readonly name: Reconciliation;
  readonly passed: readonly Passed[];
  /** The head's state is what was executed here, or will be: no block differs, none was missing, all were or are being executed. */
  readonly isExecuted: boolean;
}

export interface ReconcileOptions {
  /** This node's receipts roots are wrong where there are deposits (quirks.anvilDepositNonce). */
  readonly ignoresReceiptsRoot: boolean;
}

const isSameHash = (value: unknown, expected: Hash): boolean =>
  isHash(value) && value.toLowerCase() === expected.toLowerCase();

/** Of the sealed block, if it holds what is known: Subblocks' last transaction stands apart from the others. */
const transactionsRootOf = (block: PendingBlockState): Hash => {
  const { postExecTransaction } = block.newest.diff;
  if (!postExecTransaction) return block.transactionsRoot;
  const raws = block.parts.flatMap(({ transactions }) => transactions.map(({ raw }) => raw));
  return orderedTrieRoot([...raws, postExecTransaction].map(parseData));
};

/** The transactions root commits to the ordered hashes, so it is compared in their place. */
const compare = (block: PendingBlockState, heads: Heads, { ignoresReceiptsRoot }: ReconcileOptions): Passed => {
  const { number } = block.environment;
  const { diff } = block.newest;
  const sealed = heads.at(number);
  const header = heads.header(number);
  const differences: Difference[] = [];
  if (!isSameHash(header?.transactionsRoot, transactionsRootOf(block))) differences.push("transactions");
  if (diff.postExecTransaction) return { block, sealedHash: sealed?.hash, differences };
  if (!isQuantity(header?.gasUsed) || BigInt(header.gasUsed) !== diff.gasUsed) differences.push("gas");
  if (!sealed || formatData(sealed.logsBloom) !== diff.logsBloom) differences.push("bloom");
  if (!ignoresReceiptsRoot && !isSameHash(header?.receiptsRoot, diff.receiptsRoot)) differences.push("receiptsRoot");
  return { block, sealedHash: sealed?.hash, differences };
};

/** What is late still runs: whether its state is known is seen when it ends. */
const isWhollyExecuted = (block: PendingBlockState): boolean =>
  block.parts.every(({ changes, unverified }) => changes !== undefined || unverified === "late");

/** Each sealed block against what was pending, before anything is cleared (flashblocks.md 1.8). Pure. */
export const reconcile = (chain: PendingChain, change: HeadChange, options: ReconcileOptions): Reconciled => {
  const { heads, from } = change;
  const { latest } = heads;
  const passed = chain.blocks
    .filter((block) => block.environment.number <= latest.number)
    .map((block) => compare(block, heads, options));
  const left = chain.blocks.find((block) => block.environment.number > latest.number);
  // The base itself was replaced, or the head went another way than what stands on it.
  const isOrphaned =
    from.some(({ hash }) => hash === chain.base.hash) ||
    (left !== undefined && !standsOn(left, latest.number, latest.hash));
  const isExecuted =
    !isOrphaned &&
    passed.length > 0 &&
    BigInt(passed.length) === latest.number - chain.base.number &&
    passed.every(({ block, differences }) => differences.length === 0 && isWhollyExecuted(block));
  return { name: nameOf(chain, isOrphaned, left), passed, isExecuted };
};

const standsOn = (block: PendingBlockState, number: bigint, hash: Hash): boolean =>
  block.environment.number === number + 1n && block.environment.parentHash === hash;

const nameOf = (chain: PendingChain, isOrphaned: boolean, left: PendingBlockState | undefined): Reconciliation => {
  if (chain.blocks.length === 0) return "idle";
  if (isOrphaned) return "reorganised";
  return left ? "continued" : "caughtUp";
};
