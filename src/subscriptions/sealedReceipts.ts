import type { HeadChange, RingBlock } from "../core/heads.ts";
import type { Body } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import { type Fields, formatJson, isFields, parseJson } from "../json/jsonBytes.ts";
import { elements } from "../json/members.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { isSame } from "../verification/jsonFields.ts";
import { readWholeBlock } from "./fullTransaction.ts";
import { mayReadOtherwise, NewBlockReads, type NewBlockReadsOptions } from "./newBlockReads.ts";
import type { RpcReader } from "./sealedLogs.ts";
import type { EventCounter } from "./subscriber.ts";

/** The transactions whose receipts subscriptions want. */
interface WantedReceipts {
  isEmpty(): boolean;
  /** Whether a subscription wants the receipt of this transaction, or all receipts. */
  has(transactionHash: string): boolean;
}

/** A receipt, and its JSON text as the node wrote it. */
export interface SealedReceipt {
  readonly text: Body;
  readonly fields: Fields;
}

interface Receipts {
  /** The JSON text of the list. */
  readonly body: Body;
  /** In the order of the block. */
  readonly receipts: readonly SealedReceipt[];
}

/** A sealed block with its receipts. The list is empty if no subscription wants one of them. */
export interface SealedBlockReceipts extends Receipts {
  readonly block: RingBlock;
  /** Number of the event that added the block (see EventCounter). */
  readonly event: number;
}

export interface SealedReceiptsOptions extends NewBlockReadsOptions {
  readonly read: RpcReader;
  readonly events: EventCounter;
  readonly wanted: WantedReceipts;
  /** Called for each block of the new branch, oldest first. Resolves when its events are sent. */
  onAdded(block: SealedBlockReceipts): Promise<void>;
}

const NO_RECEIPTS: Receipts = { body: Buffer.from("[]"), receipts: [] };

/** Throws RpcError unless this is a list of receipts of the block. */
const parseReceipts = (body: Body, blockHash: Hash): Receipts => {
  const values = parseJson(body);
  const fields = Array.isArray(values) ? values.filter(isFields) : [];
  const texts = [...elements(body)];
  const isWhole = Array.isArray(values) && fields.length === values.length && fields.length === texts.length;
  if (!isWhole || !fields.every((each) => isSame(each.blockHash, blockHash))) {
    throw unavailable("the receipts of a new block are not known yet");
  }
  return { body, receipts: fields.map((each, index) => ({ fields: each, text: texts[index] ?? body })) };
};

const readOneByOne = async (read: RpcReader, blockHash: Hash, hashes: readonly string[]): Promise<Receipts> => {
  const texts = await Promise.all(hashes.map((hash) => read("eth_getTransactionReceipt", [hash])));
  return parseReceipts(formatJson(texts.map(parseJson)), blockHash);
};

/** The block in full comes first: the hashes in its receipts are verified by it. */
const readReceiptsOf = async (
  read: RpcReader,
  hash: Hash,
  wanted: WantedReceipts,
  isRefused: boolean,
): Promise<Receipts> => {
  const { transactions } = await readWholeBlock(read, hash);
  const hashes = transactions.map((transaction) => String(transaction.hash).toLowerCase());
  const found = hashes.filter((each) => wanted.has(each));
  if (found.length === 0) {
    return NO_RECEIPTS;
  }
  try {
    return parseReceipts(await read("eth_getBlockReceipts", [hash]), hash);
  } catch (error) {
    if (mayReadOtherwise(error, isRefused)) {
      return readOneByOne(read, hash, found);
    }
    throw error;
  }
};

/**
 * Creates the listener that reads the receipts of each new head, once for all subscriptions.
 * Blocks are delivered in the order of the chain. No canonical block is left out.
 */
export const createSealedReceipts = (options: SealedReceiptsOptions): ((change: HeadChange) => void) => {
  const { events, read, wanted } = options;
  const reads = new NewBlockReads(options);
  return ({ to }) => {
    const event = events.next();
    for (const block of wanted.isEmpty() ? [] : to) {
      reads.add(
        block,
        (isRefused) => readReceiptsOf(read, block.hash, wanted, isRefused),
        (known) => known && options.onAdded({ block, ...known, event }),
      );
    }
  };
};
