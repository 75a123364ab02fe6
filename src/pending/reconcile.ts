import type { BlockId, HeaderFields, Heads, RingBlock } from "../core/heads.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { formatData, type Hash, isQuantity, parseData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { postExecReceipt } from "../ethereum/postExec.ts";
import { encodeReceipt } from "../ethereum/receipt.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { PendingBlockState, PendingChain } from "./applyMessage.ts";

const DIFFERENCES = ["transactions", "gas", "bloom", "receiptsRoot"] as const;

/** A field that differs between the pending and the sealed block. It is a label value of the metric. */
export type Difference = (typeof DIFFERENCES)[number];

/** A pending block at or below the new head. */
export interface Passed {
  readonly block: PendingBlockState;
  readonly sealed: RingBlock | undefined;
  readonly differences: readonly Difference[];
  /**
   * The sealed block is the result of its messages. Both have one parent, which is a result too, or the base.
   * Gas, bloom and receipts root do not prove storage, so an execution on another state does not count.
   */
  readonly isResult: boolean;
}

export interface Reconciled {
  readonly passed: readonly Passed[];
  /** The base was replaced, or the pending blocks above the head have another parent. They are discarded. */
  readonly isOrphaned: boolean;
}

export interface ReconcileOptions {
  /** The node's receipts roots are wrong for blocks with deposits (quirks.anvilDepositNonce). */
  readonly skipsReceiptsRoot: boolean;
}

/** The block of the chain, as far as it is known. */
interface Sealed {
  readonly sealed: RingBlock | undefined;
  readonly header: HeaderFields | undefined;
}

const isNumber = (value: unknown, expected: bigint): boolean => isQuantity(value) && BigInt(value) === expected;
const isHex = (value: unknown, expected: string): boolean =>
  typeof value === "string" && value.toLowerCase() === expected.toLowerCase();

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

/** Returns the fields in which they differ. The transactions root commits to the ordered list of transactions. */
const differencesOf = (
  block: PendingBlockState,
  { sealed, header }: Sealed,
  { skipsReceiptsRoot }: ReconcileOptions,
): readonly Difference[] => {
  const { commitments } = block.newest;
  const receiptsRoots = [commitments.receiptsRoot, ...rootsWithLast(block)];
  const equal: Readonly<Record<Difference, boolean>> = {
    transactions: isHex(header?.transactionsRoot, transactionsRootOf(block)),
    gas: isNumber(header?.gasUsed, commitments.gasUsed),
    bloom: sealed !== undefined && formatData(sealed.logsBloom) === commitments.logsBloom,
    receiptsRoot: skipsReceiptsRoot || receiptsRoots.some((root) => isHex(header?.receiptsRoot, root)),
  };
  return DIFFERENCES.filter((field) => !equal[field]);
};

/** Whether the sealed block has the environment that the pending block was executed in. */
const hasEnvironment = (
  header: HeaderFields | undefined,
  environment: PendingEnvironment,
  { skipsReceiptsRoot: isAnvil }: ReconcileOptions,
): boolean =>
  isNumber(header?.timestamp, environment.timestamp) &&
  isNumber(header?.gasLimit, environment.gasLimit) &&
  isNumber(header?.baseFeePerGas, environment.baseFeePerGas) &&
  isHex(header?.miner, environment.feeRecipient) &&
  // anvil seals a block with another random value than its pending block has.
  (isAnvil || isHex(header?.mixHash, environment.prevRandao)) &&
  (isAbsent(header?.parentBeaconBlockRoot) || isHex(header?.parentBeaconBlockRoot, environment.parentBeaconBlockRoot));

/** A late execution still runs and counts as executed. */
const isWhollyExecuted = ({ parts }: PendingBlockState): boolean =>
  parts.every(({ changes, unverified }) => changes !== undefined || unverified === "late");

/** Compares a pending block with the sealed one. `parent`: the base, or a sealed block that is the result of its messages. */
const compare = (
  block: PendingBlockState,
  parent: BlockId | undefined,
  heads: Heads,
  options: ReconcileOptions,
): Passed => {
  const { environment } = block;
  const sealed = heads.at(environment.number);
  const header = heads.header(environment.number);
  const differences = differencesOf(block, { sealed, header }, options);
  const isOnParent =
    parent !== undefined && isChildOf(block, parent) && isHex(sealed?.parentHash, environment.parentHash);
  const isResult =
    isOnParent && differences.length === 0 && hasEnvironment(header, environment, options) && isWhollyExecuted(block);
  return { block, sealed, differences, isResult };
};

/** Compares the sealed blocks with the pending blocks of their numbers (docs/reference/flashblocks.md, Reconciliation). Pure. */
export const reconcile = (
  chain: PendingChain,
  heads: Heads,
  replaced: readonly RingBlock[],
  options: ReconcileOptions,
): Reconciled => {
  const { latest } = heads;
  const passed: Passed[] = [];
  let parent: BlockId | undefined = chain.base;
  for (const block of chain.blocks.filter(({ environment }) => environment.number <= latest.number)) {
    const compared = compare(block, parent, heads, options);
    passed.push(compared);
    parent = compared.isResult ? compared.sealed : undefined;
  }
  const above = chain.blocks.find((block) => block.environment.number > latest.number);
  const isBaseReplaced = replaced.some(({ hash }) => hash === chain.base.hash);
  const isOrphaned =
    above === undefined ? isBaseReplaced && passed.length > 0 : isBaseReplaced || !isChildOf(above, latest);
  return { passed, isOrphaned };
};

const isChildOf = ({ environment }: PendingBlockState, { number, hash }: BlockId): boolean =>
  environment.number === number + 1n && environment.parentHash === hash;
