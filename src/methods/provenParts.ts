import type { BlockId } from "../core/heads.ts";
import { formatTransaction, type RpcTransaction, type TransactionLocation } from "../ethereum/formatTransaction.ts";
import { formatQuantity, isQuantity } from "../ethereum/hex.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { formatPostExec } from "../ethereum/postExec.ts";
import { formatReceipt } from "../ethereum/receipt.ts";
import { DEPOSIT_TYPE, type SignedTransaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import { type Fields, isFields, parseJson } from "../json/jsonBytes.ts";
import { boundBlock } from "../verification/boundBlock.ts";
import { parseReceipt } from "../verification/checkReceipts.ts";
import { encodeRpcTransaction, parseRpcPostExec } from "../verification/encodeRpcTransaction.ts";
import { packItems } from "./jsonItems.ts";

// Parts of a block that are formatted here, from bytes below the roots of its header. Senders are recovered from signatures.

/** `hashes`: the block with the hashes of its transactions. `transactions`: the block in full. */
export type ProvenPart = "hashes" | "transactions" | "receipts" | "logs";

/** Verified responses, from which a part is formatted. */
export interface PartJob {
  readonly part: ProvenPart;
  readonly block: BlockId;
  /** The block in full. */
  readonly body: Uint8Array;
  /** The receipts of the block, for `receipts` and `logs`. */
  readonly receipts: Uint8Array | undefined;
}

const BLOB_TYPE = 3;

/** A block whose header and transactions are verified, but for the senders. */
interface RootedBlock {
  readonly block: BlockId;
  readonly fields: Fields;
  readonly transactions: readonly Fields[];
}

interface ProvenTransaction {
  readonly transaction: SignedTransaction;
  readonly location: TransactionLocation;
}

/** Returns a transaction, parsed from the bytes below the root. Undefined for a deposit: its nonce is in its receipt. */
const transactionAt = ({ block, fields, transactions }: RootedBlock, index: number): ProvenTransaction | undefined => {
  const raw = encodeRpcTransaction(transactions[index] ?? {});
  const transaction = raw && parseTransaction(raw);
  if (transaction === undefined || transaction.type === DEPOSIT_TYPE) {
    return undefined;
  }
  const sender = recoverSender(transaction);
  if (sender === undefined) {
    return undefined;
  }
  const { baseFeePerGas } = fields;
  const location = {
    ...{ sender, blockHash: block.hash, blockNumber: block.number, transactionIndex: index },
    ...(isQuantity(baseFeePerGas) && { baseFee: BigInt(baseFeePerGas) }),
  };
  return { transaction, location };
};

const formatAt = (rooted: RootedBlock, index: number): RpcTransaction | undefined => {
  const postExec = parseRpcPostExec(rooted.transactions[index] ?? {});
  if (postExec !== undefined) {
    return formatPostExec(postExec, { blockHash: rooted.block.hash, transactionIndex: index });
  }
  const found = transactionAt(rooted, index);
  return found && formatTransaction(found.transaction, found.location);
};

/** Formats the block with these transactions. Without those that are undefined, it is not whole. */
const formatBlock = ({ fields }: RootedBlock, items: readonly (string | undefined)[]): Uint8Array<ArrayBuffer> => {
  const { transactions, ...rest } = fields;
  const isBound = boundBlock({ ...rest, transactions: [] }, undefined) !== undefined;
  return packItems({
    head: `${JSON.stringify(rest).slice(0, -1)},"transactions":[`,
    items,
    tail: "]}",
    isWhole: isBound && !items.includes(undefined),
  });
};

const formatHashes = (rooted: RootedBlock): Uint8Array<ArrayBuffer> =>
  formatBlock(
    rooted,
    rooted.transactions.map(({ hash }) => JSON.stringify(hash).toLowerCase()),
  );

const formatTransactions = (rooted: RootedBlock): Uint8Array<ArrayBuffer> =>
  formatBlock(
    rooted,
    rooted.transactions.map((_, index) => {
      const found = formatAt(rooted, index);
      return found && JSON.stringify(found);
    }),
  );

const formatList = (items: readonly (string | undefined)[]): Uint8Array<ArrayBuffer> =>
  packItems({ head: "[", items, tail: "]", isWhole: !items.includes(undefined) });

/** What a log takes from its block. */
interface LogBlock {
  readonly block: BlockId;
  readonly timestamp: unknown;
  /** The hash of a transaction is not under the receipts root. So it is taken from the block. */
  readonly transactionHash: unknown;
}

const lower = (value: unknown): string => String(value).toLowerCase();

/** Returns the JSON text of a log of a verified receipt. */
const formatLogText = (log: Fields, { block, timestamp, transactionHash }: LogBlock): string =>
  JSON.stringify({
    address: lower(log.address),
    topics: Array.isArray(log.topics) ? log.topics.map(lower) : [],
    data: log.data,
    blockNumber: formatQuantity(block.number),
    transactionHash,
    transactionIndex: log.transactionIndex,
    blockHash: block.hash,
    blockTimestamp: timestamp,
    logIndex: log.logIndex,
    removed: false,
  });

/** The fees of receipts on an OP-stack chain, which deposits show, are under no root. */
const hasUnboundFees = ({ transactions }: RootedBlock): boolean =>
  transactions.some(({ type }) => isQuantity(type) && Number(type) === DEPOSIT_TYPE);

const formatReceipts = (rooted: RootedBlock, list: readonly Fields[]): Uint8Array<ArrayBuffer> => {
  if (hasUnboundFees(rooted)) {
    return formatList(list.map(() => undefined));
  }
  let cumulativeGasUsed = 0n;
  let logs = 0;
  const items = list.map((fields, index) => {
    const receipt = parseReceipt(fields);
    const gasUsed = receipt.cumulativeGasUsed - cumulativeGasUsed;
    const firstLogIndex = logs;
    cumulativeGasUsed = receipt.cumulativeGasUsed;
    logs += receipt.logs.length;
    const found = transactionAt(rooted, index);
    if (found === undefined || found.transaction.type === BLOB_TYPE) {
      return undefined;
    }
    const { transaction, location } = found;
    return JSON.stringify(formatReceipt(receipt, { ...location, transaction, gasUsed, firstLogIndex }));
  });
  return formatList(items);
};

const formatLogs = (
  { block, fields: { timestamp }, transactions }: RootedBlock,
  list: readonly Fields[],
): Uint8Array<ArrayBuffer> =>
  formatList(
    list.flatMap(({ logs }, index) => {
      const transactionHash = transactions[index]?.hash;
      const ofReceipt: readonly unknown[] = Array.isArray(logs) ? logs : [];
      return ofReceipt.filter(isFields).map((log) => formatLogText(log, { block, timestamp, transactionHash }));
    }),
  );

const rootedOf = ({ block, body }: PartJob): RootedBlock | undefined => {
  const fields = parseJson(body);
  if (!isFields(fields)) {
    return undefined;
  }
  const { transactions } = fields;
  return Array.isArray(transactions) && transactions.every(isFields) ? { block, fields, transactions } : undefined;
};

/** Returns the receipts in the order of the transactions, if they are those of the block. */
const receiptsOf = (
  receipts: Uint8Array | undefined,
  { block, transactions }: RootedBlock,
): readonly Fields[] | undefined => {
  const list = receipts && parseJson(receipts);
  const isOfBlock = (receipt: unknown): receipt is Fields => isFields(receipt) && receipt.blockHash === block.hash;
  return Array.isArray(list) && list.length === transactions.length && list.every(isOfBlock) ? list : undefined;
};

/** Returns the bytes of the part's JsonItems. Undefined if the responses do not have it. */
export const formatPart = (job: PartJob): Uint8Array<ArrayBuffer> | undefined => {
  const rooted = rootedOf(job);
  if (rooted === undefined) {
    return undefined;
  }
  if (job.part === "hashes") {
    return formatHashes(rooted);
  }
  if (job.part === "transactions") {
    return formatTransactions(rooted);
  }
  const receipts = receiptsOf(job.receipts, rooted);
  return receipts && (job.part === "receipts" ? formatReceipts(rooted, receipts) : formatLogs(rooted, receipts));
};
