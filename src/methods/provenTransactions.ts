import { isNull, type RpcResponse } from "../core/rpcSource.ts";
import { formatTransaction, type RpcTransaction, type TransactionLocation } from "../ethereum/formatTransaction.ts";
import { type Hash, isHash, isQuantity } from "../ethereum/hex.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { formatPostExec } from "../ethereum/postExec.ts";
import { formatReceipt, type RpcReceipt } from "../ethereum/receipt.ts";
import { DEPOSIT_TYPE, type SignedTransaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import { runSliced } from "../state/runSliced.ts";
import { boundBlock } from "../verification/boundBlock.ts";
import { parseReceipt } from "../verification/checkReceipts.ts";
import { encodeRpcTransaction, parseRpcPostExec } from "../verification/encodeRpcTransaction.ts";
import { NotProvenError } from "./notProven.ts";
import {
  type ProvenCall,
  type Prover,
  provenResponse,
  type RootedBlock,
  readReceipts,
  readRooted,
} from "./provenReads.ts";

// Transactions and receipts that are formatted here, from bytes below the roots of a header. Senders are recovered from signatures.

const BLOB_TYPE = 3;

interface ProvenTransaction {
  readonly transaction: SignedTransaction;
  readonly location: TransactionLocation;
}

/** Returns a transaction of a block, parsed from the bytes below the root. Throws for a deposit: its nonce is in its receipt. */
const transactionAt = ({ block, fields, transactions }: RootedBlock, index: number): ProvenTransaction => {
  const raw = encodeRpcTransaction(transactions[index] ?? {});
  const transaction = raw && parseTransaction(raw);
  if (transaction === undefined || transaction.type === DEPOSIT_TYPE) {
    throw new NotProvenError("noProof", "checked");
  }
  const sender = recoverSender(transaction);
  if (sender === undefined) {
    throw new NotProvenError("noProof", "checked");
  }
  const { baseFeePerGas } = fields;
  const location = {
    ...{ sender, blockHash: block.hash, blockNumber: block.number, transactionIndex: index },
    ...(isQuantity(baseFeePerGas) && { baseFee: BigInt(baseFeePerGas) }),
  };
  return { transaction, location };
};

const formatAt = (rooted: RootedBlock, index: number): RpcTransaction => {
  const postExec = parseRpcPostExec(rooted.transactions[index] ?? {});
  if (postExec !== undefined) {
    return formatPostExec(postExec, { blockHash: rooted.block.hash, transactionIndex: index });
  }
  const { transaction, location } = transactionAt(rooted, index);
  return formatTransaction(transaction, location);
};

/** A recovery takes some 50 us, so that those of a block run in slices. */
function* eachOf<T>({ transactions }: RootedBlock, format: (index: number) => T): Generator<undefined, T[]> {
  const all: T[] = [];
  for (const index of transactions.keys()) {
    all.push(format(index));
    yield;
  }
  return all;
}

/** The fees of receipts on an OP-stack chain, which deposits show, are under no root. */
const hasUnboundFees = ({ transactions }: RootedBlock): boolean =>
  transactions.some(({ type }) => isQuantity(type) && Number(type) === DEPOSIT_TYPE);

/** Creates the function that formats the receipt at an index. Throws if the block or the transaction has unbound fees. */
const receiptFormatter = (rooted: RootedBlock, list: readonly Fields[]): ((index: number) => RpcReceipt) => {
  if (hasUnboundFees(rooted)) {
    throw new NotProvenError("noProof", "checked");
  }
  const receipts = list.map(parseReceipt);
  return (index) => {
    const receipt = receipts[index];
    const { transaction, location } = transactionAt(rooted, index);
    if (receipt === undefined || transaction.type === BLOB_TYPE) {
      throw new NotProvenError("noProof", "checked");
    }
    const gasUsed = receipt.cumulativeGasUsed - (receipts[index - 1]?.cumulativeGasUsed ?? 0n);
    const firstLogIndex = receipts.slice(0, index).reduce((sum, { logs }) => sum + logs.length, 0);
    return formatReceipt(receipt, { ...location, transaction, gasUsed, firstLogIndex });
  };
};

/** A block follows from its header and its transactions, whose root is verified. */
export const proveBlock: Prover = async (proven) => {
  const { call, read } = proven;
  const first = await read(call.method, call.params);
  if (first.proof === "proven" || isNull(first)) {
    return first;
  }
  const rooted = await readRooted(proven, call.method, call.params[0]);
  const isBound = rooted !== undefined && boundBlock({ ...rooted.fields, transactions: [] }, undefined) !== undefined;
  if (!isBound) {
    return first;
  }
  const transactions =
    call.params[1] === true
      ? await runSliced(eachOf(rooted, (index) => formatAt(rooted, index)))
      : rooted.transactions.map(({ hash }) => hash);
  return provenResponse(Buffer.from(JSON.stringify({ ...rooted.fields, transactions })), rooted.block);
};

/** Where the block has a transaction. */
interface Place {
  readonly rooted: RootedBlock;
  readonly index: number;
}

/** Finds the block of the transaction or receipt that a node returned. Undefined if the served chain does not have it. */
const findPlace = async (proven: ProvenCall, { block }: RpcResponse, hash: unknown): Promise<Place | undefined> => {
  const rooted = block && (await readRooted(proven, "eth_getBlockByHash", block.hash));
  const wanted = String(hash).toLowerCase();
  const index = rooted?.transactions.findIndex((each) => String(each.hash).toLowerCase() === wanted) ?? -1;
  return rooted === undefined || index < 0 ? undefined : { rooted, index };
};

/** Creates the prover of a read by transaction hash. */
const proveByHash =
  (format: (place: Place, proven: ProvenCall) => Promise<RpcTransaction | RpcReceipt>): Prover =>
  async (proven) => {
    const { call, read } = proven;
    const first = await read(call.method, call.params);
    const place = isNull(first) ? undefined : await findPlace(proven, first, call.params[0]);
    return place === undefined ? first : toResponse(await format(place, proven), place.rooted);
  };

const toResponse = (value: unknown, { block }: RootedBlock): RpcResponse =>
  provenResponse(Buffer.from(JSON.stringify(value)), block);

export const proveTransaction = proveByHash(async ({ rooted, index }) => formatAt(rooted, index));

export const proveReceipt = proveByHash(async ({ rooted, index }, proven) =>
  receiptFormatter(rooted, await readReceipts(proven, rooted))(index),
);

/** Creates the prover of a read by index. `method` reads the block. The block also shows that it has nothing at an index. */
export const proveTransactionAt =
  (method: string): Prover =>
  async (proven) => {
    const { call, read } = proven;
    const [named, at] = call.params;
    const first = await read(call.method, call.params);
    const rooted = await readRooted(proven, method, named);
    if (rooted === undefined || !isQuantity(at)) {
      return first;
    }
    const index = BigInt(at);
    return index < BigInt(rooted.transactions.length)
      ? toResponse(formatAt(rooted, Number(index)), rooted)
      : toResponse(null, rooted);
  };

const hashIn = (named: unknown): Hash | undefined =>
  isHash(named) ? named : isFields(named) && isHash(named.blockHash) ? named.blockHash : undefined;

export const proveBlockReceipts: Prover = async (proven) => {
  const { call, read } = proven;
  const [named] = call.params;
  const hash = hashIn(named);
  const rooted =
    hash === undefined
      ? await readRooted(proven, "eth_getBlockByNumber", named)
      : await readRooted(proven, "eth_getBlockByHash", hash);
  if (rooted === undefined) {
    return read(call.method, call.params);
  }
  const format = receiptFormatter(rooted, await readReceipts(proven, rooted));
  return toResponse(await runSliced(eachOf(rooted, format)), rooted);
};
