import type { Body, PendingBlock, PendingEnvironment, PendingLog } from "../core/view.ts";
import { type BlockHeader, blockSize, formatHeader, hashHeader } from "../ethereum/blockHeader.ts";
import { formatQuantity, type Hash, parseData, type Quantity, ZERO_HASH } from "../ethereum/hex.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import { pendingHeader } from "../feed/flashblockHash.ts";
import type { AppliedTransaction, PendingBlockState } from "./applyMessage.ts";
import { TransactionFormatter } from "./transactionFormatter.ts";

const encoder = new TextEncoder();

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

/** A block up to one message, in the form that clients get. Everything is formatted on first use. */
class FormattedBlock implements PendingBlock {
  readonly number: bigint;
  readonly hash: Hash;
  readonly index: number;
  readonly environment: PendingEnvironment;
  readonly gasUsed: bigint;
  readonly blobGasUsed: bigint;
  readonly #block: PendingBlockState;
  readonly #formatter: TransactionFormatter;
  readonly #blockNumber: Quantity;
  readonly #blockTimestamp: Quantity;
  #header: BlockHeader | undefined;
  #transactions: readonly AppliedTransaction[] | undefined;
  #hashes: readonly Hash[] | undefined;
  #bodyWithHashes: Body | undefined;
  #fullBody: Body | undefined;
  /** `null` if a receipt is missing. */
  #receipts: Body | null | undefined;
  #logs: readonly PendingLog[] | undefined;

  constructor(block: PendingBlockState, formatter: TransactionFormatter) {
    const { environment, newest } = block;
    this.#block = block;
    this.#formatter = formatter;
    this.#blockNumber = formatQuantity(environment.number);
    this.#blockTimestamp = formatQuantity(environment.timestamp);
    this.number = environment.number;
    this.hash =
      newest.commitments.blockHash === ZERO_HASH ? hashHeader(this.#getHeader()) : newest.commitments.blockHash;
    this.index = newest.index;
    this.environment = environment;
    this.gasUsed = newest.commitments.gasUsed;
    this.blobGasUsed = newest.commitments.blobGasUsed ?? 0n;
  }

  get transactionHashes(): readonly Hash[] {
    this.#hashes ??= this.#getTransactions().map(({ hash }) => hash);
    return this.#hashes;
  }

  body(fullTransactions: boolean): Body {
    return fullTransactions ? this.#getFullBody() : this.#getBodyWithHashes();
  }

  transaction(index: number): Body | undefined {
    const applied = this.#getTransactions()[index];
    return applied && encoder.encode(this.#formatter.transaction(this.#block, applied, index));
  }

  receipt(index: number): Body | undefined {
    const applied = this.#getTransactions()[index];
    const text = applied && this.#formatter.receipt(this.#block, this.hash, applied, index);
    return text === undefined ? undefined : encoder.encode(text);
  }

  receipts(): Body | undefined {
    if (this.#receipts === undefined) {
      this.#receipts = this.#formatReceipts();
    }
    return this.#receipts ?? undefined;
  }

  get hasAllReceipts(): boolean {
    return this.#block.hasAllReceipts;
  }

  logs(fromTransaction = 0): readonly PendingLog[] {
    if (fromTransaction > 0) {
      return listLogs(this.#getTransactions(), fromTransaction);
    }
    this.#logs ??= listLogs(this.#getTransactions(), 0);
    return this.#logs;
  }

  formatLog(log: PendingLog, removed = false): Body {
    return encoder.encode(
      JSON.stringify({
        address: log.address,
        topics: log.topics,
        data: log.data,
        blockHash: this.hash,
        blockNumber: this.#blockNumber,
        blockTimestamp: this.#blockTimestamp,
        transactionHash: log.transactionHash,
        transactionIndex: formatQuantity(log.transactionIndex),
        logIndex: formatQuantity(log.logIndex),
        removed,
      }),
    );
  }

  #getHeader(): BlockHeader {
    const { environment, newest, transactionsRoot } = this.#block;
    this.#header ??= pendingHeader(environment, newest.commitments, transactionsRoot);
    return this.#header;
  }

  #getTransactions(): readonly AppliedTransaction[] {
    this.#transactions ??= this.#block.parts.flatMap((part) => part.transactions);
    return this.#transactions;
  }

  #getBodyWithHashes(): Body {
    this.#bodyWithHashes ??= this.#formatBlock(this.transactionHashes.map((hash) => `"${hash}"`));
    return this.#bodyWithHashes;
  }

  #getFullBody(): Body {
    this.#fullBody ??= this.#formatBlock(
      this.#getTransactions().map((applied, index) => this.#formatter.transaction(this.#block, applied, index)),
    );
    return this.#fullBody;
  }

  #formatBlock(transactions: readonly string[]): Body {
    const header = this.#getHeader();
    const size = blockSize(
      header,
      this.#getTransactions().map(({ raw }) => parseData(raw)),
    );
    const fields = JSON.stringify({
      ...formatHeader(header, this.hash),
      ...this.#block.extraBlockFields.block,
      size,
      uncles: [],
      withdrawals: [],
    });
    return encoder.encode(`${fields.slice(0, -1)},"transactions":[${transactions.join()}]}`);
  }

  #formatReceipts(): Body | null {
    const texts = this.#getTransactions().map((applied, index) =>
      this.#formatter.receipt(this.#block, this.hash, applied, index),
    );
    return texts.includes(undefined) ? null : encoder.encode(`[${texts.join()}]`);
  }
}

/** The formatted pending blocks of a chain. All views share the bodies of a block. */
export class BlockFormatter {
  readonly #formatter: TransactionFormatter;
  readonly #formatted = new WeakMap<PendingBlockState, PendingBlock>();

  /** `forks` returns the chain's rules as far as they are known now. */
  constructor(forks: () => ChainForks | undefined) {
    this.#formatter = new TransactionFormatter(forks);
  }

  /** Returns the same object for the same block and message. */
  format(block: PendingBlockState): PendingBlock {
    const formatted = this.#formatted.get(block) ?? new FormattedBlock(block, this.#formatter);
    this.#formatted.set(block, formatted);
    return formatted;
  }
}
