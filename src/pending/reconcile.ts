import type { HeadChange, Heads } from "../core/heads.ts";
import { formatData, type Hash, isHash, isQuantity, parseData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { postExecReceipt } from "../ethereum/postExec.ts";
import { encodeReceipt } from "../ethereum/receipt.ts";
import type { PendingBlockState, PendingChain } from "./applyMessage.ts";

/** A field that differs between the pending and the sealed block. It is a label value of the metric. */
export type Difference = "transactions" | "gas" | "bloom" | "receiptsRoot";

/** A pending block at or below the new head. */
export interface Passed {
  readonly block: PendingBlockState;
  readonly sealedHash: Hash | undefined;
  readonly differences: readonly Difference[];
}

export type Reconciliation =
  /** There was no pending block. */
  | "idle"
  /** All pending blocks are at or below the head. */
  | "caughtUp"
  /** The other pending blocks are based on the head. */
  | "continued"
  /** The other pending blocks have another parent. They are discarded. */
  | "reorganised";

export interface Reconciled {
  readonly name: Reconciliation;
  readonly passed: readonly Passed[];
}

export interface ReconcileOptions {
  /** The node's receipts roots are wrong for blocks with deposits (quirks.anvilDepositNonce). */
  readonly skipsReceiptsRoot: boolean;
}

const isSameHash = (value: unknown, expected: Hash): boolean =>
  isHash(value) && value.toLowerCase() === expected.toLowerCase();

/** Returns the expected transactions root of the sealed block. It adds the last transaction of Subblocks. */
const transactionsRootOf = (block: PendingBlockState): Hash => {
  const { closingTransaction } = block.newest;
  if (!closingTransaction) {
    return block.transactionsRoot;
  }
  const raws = block.parts.flatMap(({ transactions }) => transactions.map(({ raw }) => raw));
  return orderedTrieRoot([...raws, closingTransaction].map(parseData));
};

/** The sealed block has the receipt of its last transaction. The root of a message may lack it. */
const rootsWithLast = ({ newest, parts }: PendingBlockState): readonly Hash[] => {
  const receipts = parts.flatMap(({ transactions }) => transactions.flatMap(({ receipt }) => receipt ?? []));
  return newest.closingTransaction === undefined
    ? []
    : [orderedTrieRoot([...receipts, postExecReceipt(newest.commitments.gasUsed)].map(encodeReceipt))];
};

/** Compares a pending block with the sealed one. The transactions root commits to the ordered list of transactions. */
const compare = (block: PendingBlockState, heads: Heads, { skipsReceiptsRoot }: ReconcileOptions): Passed => {
  const { number } = block.environment;
  const { commitments } = block.newest;
  const sealed = heads.at(number);
  const header = heads.header(number);
  const differences: Difference[] = [];
  if (!isSameHash(header?.transactionsRoot, transactionsRootOf(block))) {
    differences.push("transactions");
  }
  if (!isQuantity(header?.gasUsed) || BigInt(header.gasUsed) !== commitments.gasUsed) {
    differences.push("gas");
  }
  if (!sealed || formatData(sealed.logsBloom) !== commitments.logsBloom) {
    differences.push("bloom");
  }
  const receiptsRoots = [commitments.receiptsRoot, ...rootsWithLast(block)];
  if (!skipsReceiptsRoot && !receiptsRoots.some((root) => isSameHash(header?.receiptsRoot, root))) {
    differences.push("receiptsRoot");
  }
  return { block, sealedHash: sealed?.hash, differences };
};

/** A late execution still runs and counts as executed. */
export const isWhollyExecuted = (block: PendingBlockState): boolean =>
  block.parts.every(({ trust, unverified }) => trust === "executed" || unverified === "late");

/** Compares the sealed blocks with the pending blocks of their numbers (docs/reference/flashblocks.md, Reconciliation). Pure. */
export const reconcile = (chain: PendingChain, change: HeadChange, options: ReconcileOptions): Reconciled => {
  const { heads, from } = change;
  const { latest } = heads;
  const passed = chain.blocks
    .filter((block) => block.environment.number <= latest.number)
    .map((block) => compare(block, heads, options));
  const above = chain.blocks.find((block) => block.environment.number > latest.number);
  // The base was replaced, or the pending blocks above the head are based on another block.
  const isOrphaned =
    from.some(({ hash }) => hash === chain.base.hash) ||
    (above !== undefined && !isChildOf(above, latest.number, latest.hash));
  return { name: nameOf(chain, isOrphaned, above), passed };
};

const isChildOf = (block: PendingBlockState, number: bigint, hash: Hash): boolean =>
  block.environment.number === number + 1n && block.environment.parentHash === hash;

const nameOf = (chain: PendingChain, isOrphaned: boolean, above: PendingBlockState | undefined): Reconciliation => {
  if (chain.blocks.length === 0) {
    return "idle";
  }
  if (isOrphaned) {
    return "reorganised";
  }
  return above ? "continued" : "caughtUp";
};
