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
  type Hex,
  ZERO_HASH,
} from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import {
  encodePostExec,
  formatPostExec,
  POST_EXEC_TYPE,
  type PostExec,
  parsePostExec,
} from "../../../src/ethereum/postExec.ts";
import { encodeReceipt, formatReceipt, type Receipt, type RpcLog } from "../../../src/ethereum/receipt.ts";
import type { Transaction } from "../../../src/ethereum/transaction.ts";
import { createLog, STORE_GAS } from "./emitter.ts";
import { proveEmitter } from "./emitterProof.ts";
import type { TruthState } from "./truthState.ts";

export const BASE_FEE = 7n;
export const GAS_LIMIT = 30_000_000n;
export const FEE_RECIPIENT: Address = `0x${"fe".repeat(20)}`;

export interface TruthTransaction {
  readonly transaction: Transaction;
  readonly sender: Address;
  /** The word that it stores and emits. */
  readonly word: Hex;
  /** The gas that its block gives back. */
  readonly refund: bigint;
}

/** The content that decides a block's hash. */
export interface BlockContent {
  readonly parent: TruthBlock | undefined;
  readonly timestamp: bigint;
  /** Makes the hashes of two blocks with one state different. */
  readonly extraData: Hex;
  readonly transactions: readonly TruthTransaction[];
  readonly state: TruthState;
}

export interface TruthBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly parent: TruthBlock | undefined;
  readonly header: BlockHeader;
  readonly state: TruthState;
  readonly hashes: readonly Hash[];
  readonly raws: readonly Data[];
  /** The block objects of the execution API: with hashes, and with whole transactions. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly fullJson: Readonly<Record<string, unknown>>;
  readonly transactions: readonly Readonly<Record<string, unknown>>[];
  readonly receipts: readonly Readonly<Record<string, unknown>>[];
  readonly logs: readonly RpcLog[];
}

/** Returns the receipts of a block's transactions. */
export const receiptsOf = (transactions: readonly TruthTransaction[]): readonly Receipt[] => {
  let cumulativeGasUsed = 0n;
  return transactions.map(({ transaction, word, refund }) => {
    const logs = [createLog(word)];
    cumulativeGasUsed += STORE_GAS - refund;
    return { type: transaction.type, status: true, cumulativeGasUsed, logs, logsBloom: bloomOfLogs(logs) };
  });
};

/** Returns the transaction that ends a block with refunds (Lagoon). */
const postExecOf = (transactions: readonly TruthTransaction[], number: bigint): PostExec | undefined => {
  const refunds = transactions.flatMap(({ refund }, index) => (refund > 0n ? [{ index, gasRefund: refund }] : []));
  return refunds.length === 0 ? undefined : parsePostExec(encodePostExec(number, refunds));
};

/** The receipt of the transaction that ends a block with refunds. */
const lastReceiptOf = (receipts: readonly Receipt[]): Receipt => ({
  ...{ type: POST_EXEC_TYPE, status: true, logs: [], logsBloom: createBloom() },
  cumulativeGasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n,
});

const createHeader = (
  content: BlockContent,
  receipts: readonly Receipt[],
  postExec: PostExec | undefined,
): BlockHeader => ({
  parentHash: content.parent?.hash ?? ZERO_HASH,
  miner: FEE_RECIPIENT,
  stateRoot: proveEmitter(content.state.slot).stateRoot,
  transactionsRoot: orderedTrieRoot([
    ...content.transactions.map(({ transaction }) => transaction.raw),
    ...(postExec === undefined ? [] : [postExec.raw]),
  ]),
  receiptsRoot: orderedTrieRoot(
    [...receipts, ...(postExec === undefined ? [] : [lastReceiptOf(receipts)])].map(encodeReceipt),
  ),
  logsBloom: bloomOfLogs(receipts.flatMap(({ logs }) => logs)),
  number: BigInt((content.parent?.number ?? -1) + 1),
  gasLimit: GAS_LIMIT,
  gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n,
  timestamp: content.timestamp,
  extraData: content.extraData,
  mixHash: ZERO_HASH,
  baseFeePerGas: BASE_FEE,
  withdrawalsRoot: orderedTrieRoot([]),
  blobGasUsed: 0n,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: ZERO_HASH,
  requestsHash: EMPTY_REQUESTS_HASH,
});

interface FormattedBlock {
  readonly transactions: readonly Readonly<Record<string, unknown>>[];
  readonly receipts: readonly Readonly<Record<string, unknown>>[];
}

/** Formats the transactions and receipts of a block, without that of a post-exec transaction. */
const formatOwn = (
  own: readonly TruthTransaction[],
  receipts: readonly Receipt[],
  place: { readonly blockHash: Hash; readonly blockNumber: bigint; readonly blockTimestamp: bigint },
  hasRefunds: boolean,
): FormattedBlock => {
  const all = { ...place, baseFee: BASE_FEE };
  return {
    transactions: own.map(({ transaction, sender }, transactionIndex) =>
      formatTransaction(transaction, { ...all, transactionIndex, sender }),
    ),
    receipts: receipts.flatMap((receipt, index) => {
      const each = own[index];
      if (each === undefined) {
        return [];
      }
      const { transaction, sender, refund } = each;
      const location = { ...all, transactionIndex: index, sender, transaction };
      const formatted = formatReceipt(receipt, { ...location, gasUsed: STORE_GAS - refund, firstLogIndex: index });
      return [hasRefunds ? { ...formatted, opGasRefund: refund === 0n ? null : formatQuantity(refund) } : formatted];
    }),
  };
};

/** Formats the transaction that ends a block with refunds, and its receipt, as nodes do. */
const formatLast = (postExec: PostExec, blockHash: Hash, receipts: readonly Receipt[]): FormattedBlock => {
  const { logsBloom, cumulativeGasUsed } = lastReceiptOf(receipts);
  const transaction = formatPostExec(postExec, { blockHash, transactionIndex: receipts.length });
  const { blockNumber, transactionIndex, from, type, hash: transactionHash } = transaction;
  const receipt = {
    ...{ blockHash, blockNumber, transactionHash, transactionIndex, from, to: null, contractAddress: null, type },
    ...{ cumulativeGasUsed: formatQuantity(cumulativeGasUsed), gasUsed: "0x0", effectiveGasPrice: "0x0" },
    ...{ status: "0x1", logs: [], logsBloom: formatData(logsBloom), opGasRefund: null },
  };
  return { transactions: [transaction], receipts: [receipt] };
};

/** Creates a block, sealed or still growing, with every response that a node gives about it. */
export const createTruthBlock = (content: BlockContent): TruthBlock => {
  const { parent, timestamp, transactions: own, state } = content;
  const receipts = receiptsOf(own);
  const postExec = postExecOf(own, BigInt((parent?.number ?? -1) + 1));
  const header = createHeader(content, receipts, postExec);
  const hash = hashHeader(header);
  const place = { blockHash: hash, blockNumber: header.number, blockTimestamp: timestamp };
  const first = formatOwn(own, receipts, place, postExec !== undefined);
  const last = postExec === undefined ? undefined : formatLast(postExec, hash, receipts);
  const raws = [...own.map(({ transaction }) => transaction.raw), ...(postExec === undefined ? [] : [postExec.raw])];
  const rest = { ...formatHeader(header, hash), size: blockSize(header, raws), uncles: [], withdrawals: [] };
  const transactions = [...first.transactions, ...(last?.transactions ?? [])];
  const hashes = [
    ...own.map(({ transaction }) => transaction.hash),
    ...(postExec === undefined ? [] : [postExec.hash]),
  ];
  return {
    ...{ number: Number(header.number), hash, parent, header, state, hashes, transactions },
    raws: raws.map(formatData),
    json: { ...rest, transactions: hashes },
    fullJson: { ...rest, transactions },
    receipts: [...first.receipts, ...(last?.receipts ?? [])],
    logs: first.receipts.flatMap(({ logs }) => logs as RpcLog[]),
  };
};

/** Returns the block at a number on the branch of `head`. */
export const ancestorAt = (head: TruthBlock, number: number): TruthBlock | undefined => {
  let block: TruthBlock | undefined = number > head.number ? undefined : head;
  while (block !== undefined && block.number > number) {
    block = block.parent;
  }
  return block;
};

export const isAncestor = (block: TruthBlock, head: TruthBlock): boolean => ancestorAt(head, block.number) === block;
