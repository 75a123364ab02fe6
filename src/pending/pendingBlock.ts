import type { Body, PendingBlock, PendingLog } from "../core/view.ts";
import { type BlockHeader, blockSize, EMPTY_REQUESTS_HASH, formatHeader, hashHeader } from "../ethereum/blockHeader.ts";
import { formatTransaction } from "../ethereum/formatTransaction.ts";
import { type Address, formatQuantity, type Hash, parseData, ZERO_ADDRESS, ZERO_HASH } from "../ethereum/hex.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { formatReceipt } from "../ethereum/receipt.ts";
import { DEPOSIT_TYPE, InvalidTransaction, type Transaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/recoverAddress.ts";
import type { AppliedTransaction, PendingBlockState } from "./applyFlashblock.ts";
import { l1Extra } from "./l1Extra.ts";

const encoder = new TextEncoder();

const once = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};

const parsed = new WeakMap<AppliedTransaction, Transaction | undefined>();
const parseOnce = (folded: AppliedTransaction): Transaction | undefined => {
  if (parsed.has(folded)) return parsed.get(folded);
  let transaction: Transaction | undefined;
  try {
    transaction = parseTransaction(parseData(folded.raw));
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) throw error;
  }
  parsed.set(folded, transaction);
  return transaction;
};

/** Recovered in the executor, unless that was late. */
const senderOf = (folded: AppliedTransaction, transaction: Transaction): Address => {
  if (folded.sender !== undefined) return folded.sender;
  return (transaction.type === DEPOSIT_TYPE ? transaction.from : recoverSender(transaction)) ?? ZERO_ADDRESS;
};

/** flashblocks.md 1.4: what the header is, if the block ended with this message. */
const headerOf = ({ environment, newest, transactionsRoot }: PendingBlockState): BlockHeader => ({
  parentHash: environment.parentHash,
  miner: environment.feeRecipient,
  stateRoot: newest.diff.stateRoot,
  transactionsRoot,
  receiptsRoot: newest.diff.receiptsRoot,
  logsBloom: parseData(newest.diff.logsBloom),
  number: environment.number,
  gasLimit: environment.gasLimit,
  gasUsed: newest.diff.gasUsed,
  timestamp: environment.timestamp,
  extraData: environment.extraData,
  mixHash: environment.prevRandao,
  baseFeePerGas: environment.baseFeePerGas,
  withdrawalsRoot: newest.diff.withdrawalsRoot,
  blobGasUsed: newest.diff.blobGasUsed ?? 0n,
  excessBlobGas: 0n,
  parentBeaconBlockRoot: environment.parentBeaconBlockRoot,
  requestsHash: EMPTY_REQUESTS_HASH,
});

const transactionTexts = new WeakMap<AppliedTransaction, string>();

/** A transaction does not say its block's hash while that changes, so its text is made once for all messages that follow. */
const transactionText = (block: PendingBlockState, folded: AppliedTransaction, index: number): string => {
  const known = transactionTexts.get(folded);
  if (known !== undefined) return known;
  const transaction = parseOnce(folded);
  const { number, timestamp } = block.environment;
  const timed = block.extraBlockFields.hasTransactionTimestamp === true;
  const place = {
    blockHash: null,
    blockNumber: number,
    transactionIndex: index,
    ...(timed && { blockTimestamp: timestamp }),
  };
  const text = JSON.stringify(
    transaction
      ? formatTransaction(transaction, {
          ...place,
          sender: senderOf(folded, transaction),
          baseFee: block.environment.baseFeePerGas,
          ...depositPart(folded),
        })
      : // Of a type that is not known here: what every type has.
        { ...formatPlace(block, index, timed), hash: folded.hash, type: `0x${folded.raw.slice(2, 4)}` },
  );
  transactionTexts.set(folded, text);
  return text;
};

const formatPlace = (block: PendingBlockState, index: number, timed: boolean) => ({
  blockHash: null,
  blockNumber: formatQuantity(block.environment.number),
  ...(timed && { blockTimestamp: formatQuantity(block.environment.timestamp) }),
  transactionIndex: formatQuantity(index),
});

const depositPart = ({ receipt }: AppliedTransaction) => {
  if (receipt?.depositNonce === undefined) return {};
  const { depositNonce, depositReceiptVersion } = receipt;
  return { depositNonce, ...(depositReceiptVersion === undefined ? {} : { depositReceiptVersion }) };
};

const receiptText = (block: PendingBlockState, blockHash: Hash, folded: AppliedTransaction, index: number) => {
  const transaction = parseOnce(folded);
  if (!folded.receipt || !transaction) return undefined;
  const { number, timestamp, baseFeePerGas } = block.environment;
  return JSON.stringify(
    formatReceipt(folded.receipt, {
      transaction,
      sender: senderOf(folded, transaction),
      blockHash,
      blockNumber: number,
      blockTimestamp: timestamp,
      transactionIndex: index,
      baseFee: baseFeePerGas,
      gasUsed: folded.gasUsed,
      firstLogIndex: folded.firstLogIndex,
      extra: folded.extra ?? l1Extra(block, transaction),
    }),
  );
};

const listLogs = (transactions: readonly AppliedTransaction[], fromTransaction: number): readonly PendingLog[] =>
  transactions.slice(fromTransaction).flatMap(({ hash, receipt, firstLogIndex }, position) =>
    (receipt?.logs ?? []).map(
      ({ address, topics, data }, at): PendingLog => ({
        address,
        topics,
        data,
        transactionHash: hash,
        transactionIndex: fromTransaction + position,
        logIndex: firstLogIndex + at,
      }),
    ),
  );

/** What callers see of a folded block. */
export const createPendingBlock = (block: PendingBlockState): PendingBlock => {
  const { environment, newest } = block;
  const header = once(() => headerOf(block));
  const transactions = once(() => block.parts.flatMap((part) => part.transactions));
  const hash = newest.diff.blockHash === ZERO_HASH ? hashHeader(header()) : newest.diff.blockHash;
  const number = formatQuantity(environment.number);
  const timestamp = formatQuantity(environment.timestamp);

  const formatBlock = (list: string): Body => {
    const size = blockSize(
      header(),
      transactions().map(({ raw }) => parseData(raw)),
    );
    const fields = JSON.stringify({
      ...formatHeader(header(), hash),
      ...block.extraBlockFields.block,
      size,
      uncles: [],
      withdrawals: [],
    });
    return encoder.encode(`${fields.slice(0, -1)},"transactions":[${list}]}`);
  };
  const hashes = once(() => transactions().map((transaction) => transaction.hash));
  const body = once(() =>
    formatBlock(
      hashes()
        .map((item) => `"${item}"`)
        .join(),
    ),
  );
  const fullBody = once(() =>
    formatBlock(
      transactions()
        .map((item, index) => transactionText(block, item, index))
        .join(),
    ),
  );
  const allReceipts = once(() => {
    const texts = transactions().map((item, index) => receiptText(block, hash, item, index));
    return texts.includes(undefined) ? undefined : encoder.encode(`[${texts.join()}]`);
  });
  const allLogs = once(() => listLogs(transactions(), 0));

  return {
    number: environment.number,
    hash,
    index: newest.index,
    environment,
    gasUsed: newest.diff.gasUsed,
    blobGasUsed: newest.diff.blobGasUsed ?? 0n,
    get transactionHashes() {
      return hashes();
    },
    body: (fullTransactions) => (fullTransactions ? fullBody() : body()),
    transaction: (index) => {
      const item = transactions()[index];
      return item && encoder.encode(transactionText(block, item, index));
    },
    receipt: (index) => {
      const item = transactions()[index];
      const text = item && receiptText(block, hash, item, index);
      return text === undefined ? undefined : encoder.encode(text);
    },
    receipts: allReceipts,
    logs: (fromTransaction = 0) => (fromTransaction === 0 ? allLogs() : listLogs(transactions(), fromTransaction)),
    formatLog: (log, removed = false) =>
      encoder.encode(
        JSON.stringify({
          address: log.address,
          topics: log.topics,
          data: log.data,
          blockHash: hash,
          blockNumber: number,
          blockTimestamp: timestamp,
          transactionHash: log.transactionHash,
          transactionIndex: formatQuantity(log.transactionIndex),
          logIndex: formatQuantity(log.logIndex),
          removed,
        }),
      ),
  };
};
