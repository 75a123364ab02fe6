import type { HeadChange, RingBlock } from "../chain/heads.ts";
import type { Body, PendingBlock, PendingChange, PendingExtension } from "../chain/view.ts";
import type { Log } from "../telemetry.ts";
import { createInOrder } from "./inOrder.ts";
import { createNotification } from "./notification.ts";
import type { Ask } from "./sealedLogs.ts";
import { parseTransactions, readSealedTransactions } from "./sealedTransactions.ts";
import { deliver, type Subscription } from "./subscriber.ts";

/** Who wants what of the blocks being built. */
export interface FlashblockAudience {
  readonly blocks: ReadonlySet<Subscription>;
  readonly hashes: ReadonlySet<Subscription>;
  /** Transactions whole, with their logs. */
  readonly transactions: ReadonlySet<Subscription>;
}

export interface FlashblocksOptions {
  readonly audience: FlashblockAudience;
  /** The newest sealed block's number. */
  head(): bigint;
  readonly ask: Ask;
  onDelivered(kind: "newFlashblocks" | "newFlashblockTransactions", count: number): void;
  readonly log: Log;
}

export interface Flashblocks {
  onPending(change: PendingChange): void;
  /** A node's own pending block as it is now, or `null`. */
  onNodePending(body: Body): void;
  /** What was not announced before it was sealed is announced now: native mode, and gaps in the feed. */
  onHead(change: HeadChange): void;
}

const MAX_BLOCKS = 128n;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What a receipt adds to its transaction. */
const fromReceipt = ({
  logs,
  gasUsed,
  status,
  cumulativeGasUsed,
  contractAddress,
  logsBloom,
}: Record<string, unknown>) => ({
  logs,
  gasUsed,
  status,
  cumulativeGasUsed,
  contractAddress,
  logsBloom,
});

/** Undefined while the receipt is not known: its logs are announced later. */
const withReceipt = (block: PendingBlock, index: number): Body | undefined => {
  const transaction = block.transaction(index);
  const receipt = block.receipt(index);
  if (!transaction || !receipt) return undefined;
  const added = fromReceipt(JSON.parse(decoder.decode(receipt)));
  return encoder.encode(JSON.stringify({ ...JSON.parse(decoder.decode(transaction)), ...added }));
};

export const createFlashblocks = ({ audience, head, ask, onDelivered, log }: FlashblocksOptions): Flashblocks => {
  const inOrder = createInOrder((err) => log.warn({ err }, "a sealed block could not be told to subscriptions"));
  /** Told transactions by their block's number; a number that is here has been announced. */
  const told = new Map<bigint, { readonly hashes: Set<string>; readonly whole: Set<string> }>();

  let nodeBody: Body = Buffer.alloc(0);

  const toldOf = (number: bigint) => {
    const known = told.get(number) ?? { hashes: new Set<string>(), whole: new Set<string>() };
    told.set(number, known);
    return known;
  };

  const sendBlock = (body: Body): void =>
    onDelivered("newFlashblocks", deliver(createNotification(body), audience.blocks));

  /** Once for each transaction; `body` may say that it is not known yet. */
  const sendOnce = (
    known: Set<string>,
    hash: string,
    to: ReadonlySet<Subscription>,
    body: () => Body | undefined,
  ): void => {
    if (known.has(hash)) return;
    const made = to.size > 0 ? body() : undefined;
    if (made === undefined && to.size > 0) return;
    known.add(hash);
    if (made) onDelivered("newFlashblockTransactions", deliver(createNotification(made), to));
  };

  const extend = ({ block, fromTransaction, toTransaction }: PendingExtension): void => {
    const known = toldOf(block.number);
    for (let index = fromTransaction; index < toTransaction; index++) {
      const hash = block.transactionHashes[index];
      if (hash === undefined) continue;
      sendOnce(known.hashes, hash, audience.hashes, () => encoder.encode(`"${hash}"`));
      sendOnce(known.whole, hash, audience.transactions, () => withReceipt(block, index));
    }
  };

  const sealed = async ({ number, hash }: RingBlock): Promise<void> => {
    const isAnnounced = told.has(number);
    const known = toldOf(number);
    const wantsBlock = audience.blocks.size > 0 && !isAnnounced;
    if (!wantsBlock && audience.hashes.size === 0 && audience.transactions.size === 0) return;
    const block = await readSealedTransactions(ask, hash, () => audience.transactions.size > 0);
    if (wantsBlock) sendBlock(block.body);
    for (const { hash: of, transaction, receipt } of block.transactions) {
      sendOnce(known.hashes, of, audience.hashes, () => encoder.encode(`"${of}"`));
      sendOnce(known.whole, of, audience.transactions, () =>
        encoder.encode(JSON.stringify({ ...transaction, ...fromReceipt(receipt) })),
      );
    }
  };

  return {
    onPending: ({ extended }) => {
      for (const block of new Set(extended.map((extension) => extension.block))) {
        toldOf(block.number);
        if (audience.blocks.size > 0) sendBlock(block.body(true));
      }
      for (const extension of extended) extend(extension);
    },
    onNodePending: (body) => {
      const block = parseTransactions(body);
      // A node without a pending block of its own gives its latest.
      if (block.number === undefined || block.number <= head() || Buffer.compare(body, nodeBody) === 0) return;
      nodeBody = body;
      const known = toldOf(block.number);
      if (audience.blocks.size > 0) sendBlock(body);
      for (const { hash } of block.transactions) {
        sendOnce(known.hashes, String(hash), audience.hashes, () => encoder.encode(`"${hash}"`));
      }
    },
    onHead: ({ heads, from, to }) => {
      for (const { number } of from) told.delete(number);
      for (const block of to) inOrder(() => sealed(block));
      for (const old of told.keys()) if (old < heads.latest.number - MAX_BLOCKS) told.delete(old);
    },
  };
};
