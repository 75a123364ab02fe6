import {
  type BlockHeader,
  blockSize,
  EMPTY_REQUESTS_HASH,
  formatHeader,
  hashHeader,
} from "../../../src/ethereum/blockHeader.ts";
import { bloomOfLogs } from "../../../src/ethereum/bloom.ts";
import { formatTransaction } from "../../../src/ethereum/formatTransaction.ts";
import { type Address, type Data, formatData, type Hash, type Hex, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
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

export const receiptOf = ({ transaction, word }: TruthTransaction, index: number): Receipt => {
  const logs = [createLog(word)];
  const cumulativeGasUsed = STORE_GAS * BigInt(index + 1);
  return { type: transaction.type, status: true, cumulativeGasUsed, logs, logsBloom: bloomOfLogs(logs) };
};

const createHeader = (content: BlockContent, receipts: readonly Receipt[]): BlockHeader => ({
  parentHash: content.parent?.hash ?? ZERO_HASH,
  miner: FEE_RECIPIENT,
  stateRoot: proveEmitter(content.state.slot).stateRoot,
  transactionsRoot: orderedTrieRoot(content.transactions.map(({ transaction }) => transaction.raw)),
  receiptsRoot: orderedTrieRoot(receipts.map(encodeReceipt)),
  logsBloom: bloomOfLogs(receipts.flatMap(({ logs }) => logs)),
  number: BigInt((content.parent?.number ?? -1) + 1),
  gasLimit: GAS_LIMIT,
  gasUsed: STORE_GAS * BigInt(receipts.length),
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

/** Creates a block, sealed or still growing, with every response that a node gives about it. */
export const createTruthBlock = (content: BlockContent): TruthBlock => {
  const { parent, timestamp, transactions: own, state } = content;
  const receipts = own.map(receiptOf);
  const header = createHeader(content, receipts);
  const hash = hashHeader(header);
  const place = { blockHash: hash, blockNumber: header.number, blockTimestamp: timestamp, baseFee: BASE_FEE };
  const transactions = own.map(({ transaction, sender }, transactionIndex) =>
    formatTransaction(transaction, { ...place, transactionIndex, sender }),
  );
  const formatted = receipts.map((receipt, index) => {
    const { transaction, sender } = own[index] as TruthTransaction;
    const location = { ...place, transactionIndex: index, sender, transaction };
    return formatReceipt(receipt, { ...location, gasUsed: STORE_GAS, firstLogIndex: index });
  });
  const rest = {
    ...formatHeader(header, hash),
    size: blockSize(
      header,
      own.map(({ transaction }) => transaction.raw),
    ),
    uncles: [],
    withdrawals: [],
  };
  const hashes = own.map(({ transaction }) => transaction.hash);
  return {
    ...{ number: Number(header.number), hash, parent, header, state, hashes, transactions },
    raws: own.map(({ transaction }) => formatData(transaction.raw)),
    json: { ...rest, transactions: hashes },
    fullJson: { ...rest, transactions },
    receipts: formatted,
    logs: formatted.flatMap(({ logs }) => logs as RpcLog[]),
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
