import {
  type BlockHeader,
  blockSize,
  EMPTY_REQUESTS_HASH,
  formatHeader,
  hashHeader,
} from "../../../src/ethereum/blockHeader.ts";
import { bloomOfLogs, createBloom } from "../../../src/ethereum/bloom.ts";
import { formatTransaction } from "../../../src/ethereum/formatTransaction.ts";
import {
  type Address,
  type Data,
  formatData,
  formatQuantity,
  type Hash,
  parseData,
  ZERO_HASH,
} from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import {
  encodePostExec,
  formatPostExec,
  type GasRefund,
  POST_EXEC_TYPE,
  type PostExec,
  parsePostExec,
  refundsByIndex,
} from "../../../src/ethereum/postExec.ts";
import { encodeReceipt, formatReceipt, type Receipt, type RpcLog } from "../../../src/ethereum/receipt.ts";
import { encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import type { Transaction } from "../../../src/ethereum/transaction.ts";
import type { ProofResponse } from "../../support/builders/provenState.ts";
import type { BlockAccessList } from "../state/blockAccessList.ts";
import type { TraceForm } from "../state/diffTrace.ts";

export const BASE_FEE = 7n;
export const GAS_LIMIT = 30_000_000n;

/** The state after a block. */
export interface BlockState {
  balance(address: Address): bigint;
  nonce(address: Address): bigint;
  code(address: Address): Data;
  slot(address: Address, slot: Hash): Hash;
}

/** Everything that a node returns about a block. */
export interface SealedBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly parent: SealedBlock | undefined;
  readonly header: BlockHeader;
  readonly hashes: readonly Hash[];
  readonly raws: readonly Data[];
  /** The block objects of the execution API: with hashes, and with whole transactions. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly fullJson: Readonly<Record<string, unknown>>;
  readonly transactions: readonly Readonly<Record<string, unknown>>[];
  /** Undefined: the node has none. */
  readonly receipts: readonly Readonly<Record<string, unknown>>[] | undefined;
  readonly logs: readonly RpcLog[];
  readonly state: BlockState;
  /** Answers eth_getProof. Undefined: nodes have no proofs, or none of this block. */
  readonly proofOf?: ((address: Address, slots: readonly string[]) => ProofResponse | undefined) | undefined;
  /** Returns the trie nodes of an execution witness, the root first. Undefined: there is none. */
  readonly witness?: (() => readonly Data[] | undefined) | undefined;
  readonly accessList?: BlockAccessList | undefined;
  readonly trace?: (form: TraceForm) => readonly unknown[];
  readonly callTrace?: readonly unknown[];
}

export interface SentTransaction {
  readonly transaction: Transaction;
  readonly sender: Address;
}

export interface Withdrawal {
  readonly address: Address;
  /** In gwei. */
  readonly amount: bigint;
}

/** What decides a block's hash. Fields of `header` replace those that follow from the rest. */
export interface SealedContent {
  readonly parent: SealedBlock | undefined;
  readonly header: Pick<BlockHeader, "miner" | "stateRoot" | "timestamp" | "extraData"> & Partial<BlockHeader>;
  readonly own: readonly SentTransaction[];
  /** Of the own transactions. Undefined: the node has none. */
  readonly receipts: readonly Receipt[] | undefined;
  /** The gas that a post-exec transaction at the end gives back (Lagoon). Undefined: the rules of the chain have no such thing. */
  readonly refunds?: readonly GasRefund[] | undefined;
  readonly withdrawals?: readonly Withdrawal[];
}

export const CANCUN_FIELDS = {
  ...{ blobGasUsed: 0n, excessBlobGas: 0n, parentBeaconBlockRoot: ZERO_HASH },
  requestsHash: EMPTY_REQUESTS_HASH,
} as const;

/** Returns the transaction that ends a block with refunds (Lagoon). Without refunds, there is none. */
export const postExecOf = (number: bigint, refunds: readonly GasRefund[] = []): PostExec | undefined =>
  refunds.length === 0 ? undefined : parsePostExec(encodePostExec(number, refunds));

/** The receipt of the transaction that ends a block with refunds. */
const lastReceiptOf = (receipts: readonly Receipt[]): Receipt => ({
  ...{ type: POST_EXEC_TYPE, status: true, logs: [], logsBloom: createBloom() },
  cumulativeGasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n,
});

const encodeWithdrawal = ({ address, amount }: Withdrawal, index: number): Uint8Array =>
  encodeList([encodeNumber(index), encodeNumber(index), encodeBytes(parseData(address)), encodeNumber(amount)]);

const formatWithdrawal = ({ address, amount }: Withdrawal, index: number) => ({
  index: formatQuantity(index),
  validatorIndex: formatQuantity(index),
  address,
  amount: formatQuantity(amount),
});

const createHeader = (
  { parent, header, receipts = [], withdrawals = [] }: SealedContent,
  raws: readonly Uint8Array[],
  postExec: PostExec | undefined,
): BlockHeader => ({
  parentHash: parent?.hash ?? ZERO_HASH,
  transactionsRoot: orderedTrieRoot(raws),
  receiptsRoot: orderedTrieRoot([...receipts, ...(postExec ? [lastReceiptOf(receipts)] : [])].map(encodeReceipt)),
  logsBloom: bloomOfLogs(receipts.flatMap(({ logs }) => logs)),
  number: BigInt((parent?.number ?? -1) + 1),
  gasLimit: GAS_LIMIT,
  gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n,
  mixHash: ZERO_HASH,
  baseFeePerGas: BASE_FEE,
  withdrawalsRoot: orderedTrieRoot(withdrawals.map(encodeWithdrawal)),
  ...header,
});

interface Place {
  readonly blockHash: Hash;
  readonly blockNumber: bigint;
  readonly blockTimestamp: bigint;
  readonly baseFee: bigint;
}

/** Formats the receipts of a block's own transactions. */
const formatReceipts = (
  receipts: readonly Receipt[],
  { own, refunds }: SealedContent,
  place: Place,
  byIndex: ReadonlyMap<number, bigint>,
) => {
  let [before, firstLogIndex] = [0n, 0];
  return receipts.flatMap((receipt, transactionIndex) => {
    const sent = own[transactionIndex];
    if (sent === undefined) {
      return [];
    }
    const gasUsed = receipt.cumulativeGasUsed - before;
    const formatted = formatReceipt(receipt, { ...place, ...sent, transactionIndex, gasUsed, firstLogIndex });
    before = receipt.cumulativeGasUsed;
    firstLogIndex += receipt.logs.length;
    const refund = byIndex.get(transactionIndex);
    return [
      refunds === undefined
        ? formatted
        : { ...formatted, opGasRefund: refund === undefined ? null : formatQuantity(refund) },
    ];
  });
};

/** Formats the receipt of the transaction that ends a block with refunds, as nodes do. */
const formatLastReceipt = (last: ReturnType<typeof formatPostExec>, receipts: readonly Receipt[]) => {
  const { logsBloom, cumulativeGasUsed } = lastReceiptOf(receipts);
  const { blockHash, blockNumber, transactionIndex, from, type, hash: transactionHash } = last;
  return {
    ...{ blockHash, blockNumber, transactionHash, transactionIndex, from, to: null, contractAddress: null, type },
    ...{ cumulativeGasUsed: formatQuantity(cumulativeGasUsed), gasUsed: "0x0", effectiveGasPrice: "0x0" },
    ...{ status: "0x1", logs: [], logsBloom: formatData(logsBloom), opGasRefund: null },
  };
};

/** Creates a block, sealed or still growing, with every response that a node gives about it but for its state. */
export const sealBlock = (content: SealedContent): Omit<SealedBlock, "parent" | "state"> => {
  const { parent, own, receipts, refunds, withdrawals = [] } = content;
  const postExec = postExecOf(BigInt((parent?.number ?? -1) + 1), refunds);
  const raws = [...own.map(({ transaction }) => transaction.raw), ...(postExec === undefined ? [] : [postExec.raw])];
  const header = createHeader(content, raws, postExec);
  const hash = hashHeader(header);
  const place = {
    ...{ blockHash: hash, blockNumber: header.number, blockTimestamp: header.timestamp, baseFee: BASE_FEE },
  };
  const last = postExec && formatPostExec(postExec, { blockHash: hash, transactionIndex: own.length });
  const transactions = [
    ...own.map(({ transaction, sender }, transactionIndex) =>
      formatTransaction(transaction, { ...place, transactionIndex, sender }),
    ),
    ...(last === undefined ? [] : [last]),
  ];
  const hashes = [...own.map(({ transaction }) => transaction.hash), ...(postExec ? [postExec.hash] : [])];
  const formatted = receipts && formatReceipts(receipts, content, place, refundsByIndex(postExec));
  const rest = {
    ...formatHeader(header, hash),
    ...{ size: blockSize(header, raws), uncles: [], withdrawals: withdrawals.map(formatWithdrawal) },
  };
  return {
    ...{ number: Number(header.number), hash, header, hashes, transactions },
    raws: raws.map(formatData),
    json: { ...rest, transactions: hashes },
    fullJson: { ...rest, transactions },
    receipts: formatted && [...formatted, ...(last && receipts ? [formatLastReceipt(last, receipts)] : [])],
    logs: (formatted ?? []).flatMap(({ logs }) => logs as RpcLog[]),
  };
};

/** Returns the block at a number on the branch of `head`. */
export const ancestorAt = <Block extends { readonly number: number; readonly parent: Block | undefined }>(
  head: Block,
  number: number,
): Block | undefined => {
  let block: Block | undefined = number > head.number ? undefined : head;
  while (block !== undefined && block.number > number) {
    block = block.parent;
  }
  return block;
};

export const isAncestor = (block: SealedBlock, head: SealedBlock): boolean =>
  ancestorAt<SealedBlock>(head, block.number) === block;
