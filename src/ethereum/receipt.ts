import { effectiveGasPrice, type TransactionLocation } from "./formatTransaction.ts";
import { type Address, type Data, formatData, formatQuantity, type Hash, parseData, writeData } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber, listLength, prefixLength, writePrefix } from "./rlp.ts";
import { DEPOSIT_TYPE, type Transaction } from "./transaction.ts";

/** The fields of a log that are part of consensus. */
export interface LogEntry {
  readonly address: Address;
  readonly topics: readonly Hash[];
  readonly data: Data;
}

export interface Receipt {
  readonly type: number;
  /** The state's root in receipts before Byzantium (EIP-658). */
  readonly status: boolean | Hash;
  readonly cumulativeGasUsed: bigint;
  readonly logs: readonly LogEntry[];
  readonly logsBloom: Uint8Array;
  /** Deposits only, since Regolith. */
  readonly depositNonce?: bigint;
  /** Deposits only, since Canyon. */
  readonly depositReceiptVersion?: bigint;
}

/** Encodes a receipt for the receipts root. Source: EIP-2718; for deposits https://specs.optimism.io/protocol/deposits.html */
export const encodeReceipt = (receipt: Receipt): Uint8Array => {
  const { status } = receipt;
  const fields = [
    typeof status === "string" ? encodeBytes(parseData(status)) : encodeNumber(status ? 1 : 0),
    encodeNumber(receipt.cumulativeGasUsed),
    encodeBytes(receipt.logsBloom),
    encodeLogs(receipt.logs),
  ];
  if (receipt.type === DEPOSIT_TYPE) {
    if (receipt.depositNonce !== undefined) {
      fields.push(encodeNumber(receipt.depositNonce));
    }
    if (receipt.depositReceiptVersion !== undefined) {
      fields.push(encodeNumber(receipt.depositReceiptVersion));
    }
  }
  const payload = encodeList(fields);
  return receipt.type === 0 ? payload : concatBytes([Uint8Array.of(receipt.type), payload]);
};

const ADDRESS_BYTES = 21;
const TOPIC_BYTES = 33;

/** Logs are most of a receipt. Their lengths are computed first, so all are written into one array. */
const encodeLogs = (logs: readonly LogEntry[]): Uint8Array => {
  let length = 0;
  for (const log of logs) {
    length += listLength(logPayload(log));
  }
  const encoded = new Uint8Array(listLength(length));
  let at = writePrefix(encoded, 0, length, 0xc0);
  for (const log of logs) {
    at = writePrefix(encoded, at, logPayload(log), 0xc0);
    at = writeItem(encoded, at, log.address);
    at = writePrefix(encoded, at, log.topics.length * TOPIC_BYTES, 0xc0);
    for (const topic of log.topics) {
      at = writeItem(encoded, at, topic);
    }
    at = writeItem(encoded, at, log.data);
  }
  return encoded;
};

const logPayload = ({ topics, data }: LogEntry): number =>
  ADDRESS_BYTES + listLength(topics.length * TOPIC_BYTES) + dataLength(data);

/** A single byte below 0x80 is its own encoding. */
const isOwnEncoding = (data: Data): boolean => data.length === 4 && data < "0x80";

const dataLength = (data: Data): number => {
  const length = data.length / 2 - 1;
  return isOwnEncoding(data) ? 1 : prefixLength(length) + length;
};

const writeItem = (into: Uint8Array, at: number, data: Data): number => {
  const start = isOwnEncoding(data) ? at : writePrefix(into, at, data.length / 2 - 1, 0x80);
  return writeData(data, into, start);
};

/** The position of a receipt. `blockHash` is the block's own hash, also if the block is not sealed. */
export interface ReceiptLocation extends Omit<TransactionLocation, "depositNonce" | "depositReceiptVersion"> {
  readonly transaction: Transaction;
  readonly gasUsed: bigint;
  /** The index in the block of this receipt's first log. */
  readonly firstLogIndex: number;
  /** Further fields of the chain's nodes: L1 fees, blob gas. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

export type RpcLog = Readonly<Record<string, unknown>>;
export type RpcReceipt = Readonly<Record<string, unknown>>;

/** Formats the logs of one receipt as the objects of the execution API. */
const formatLogs = (logs: readonly LogEntry[], location: Omit<ReceiptLocation, "gasUsed" | "sender">): RpcLog[] =>
  logs.map(({ address, topics, data }, at) => ({
    address,
    topics,
    data,
    blockHash: location.blockHash,
    blockNumber: formatQuantity(location.blockNumber),
    ...(location.blockTimestamp === undefined ? {} : { blockTimestamp: formatQuantity(location.blockTimestamp) }),
    transactionHash: location.transaction.hash,
    transactionIndex: formatQuantity(location.transactionIndex),
    logIndex: formatQuantity(location.firstLogIndex + at),
    removed: false,
  }));

/** Formats the receipt object of the execution API. */
export const formatReceipt = (receipt: Receipt, location: ReceiptLocation): RpcReceipt => {
  const { transaction } = location;
  const sender = transaction.type === DEPOSIT_TYPE ? transaction.from : location.sender;
  const nonce = transaction.type === DEPOSIT_TYPE ? (receipt.depositNonce ?? 0n) : transaction.nonce;
  return {
    transactionHash: transaction.hash,
    transactionIndex: formatQuantity(location.transactionIndex),
    blockHash: location.blockHash,
    blockNumber: formatQuantity(location.blockNumber),
    from: sender,
    to: transaction.to,
    cumulativeGasUsed: formatQuantity(receipt.cumulativeGasUsed),
    gasUsed: formatQuantity(location.gasUsed),
    contractAddress: transaction.to === null ? createdAddress(sender, nonce) : null,
    logs: formatLogs(receipt.logs, location),
    logsBloom: formatData(receipt.logsBloom),
    ...(typeof receipt.status === "string"
      ? { root: receipt.status }
      : { status: formatQuantity(receipt.status ? 1 : 0) }),
    effectiveGasPrice: formatQuantity(effectiveGasPrice(transaction, location.baseFee)),
    type: formatQuantity(receipt.type),
    ...(receipt.depositNonce === undefined ? {} : { depositNonce: formatQuantity(receipt.depositNonce) }),
    ...(receipt.depositReceiptVersion === undefined
      ? {}
      : { depositReceiptVersion: formatQuantity(receipt.depositReceiptVersion) }),
    ...location.extra,
  };
};

/** Returns the address of a contract that a transaction creates: the last 20 bytes of keccak(rlp([sender, nonce])). */
export const createdAddress = (sender: Address, nonce: bigint): Address =>
  formatData(keccak256(encodeList([encodeBytes(parseData(sender)), encodeNumber(nonce)])).subarray(12));
