import type { HeadChange, RingBlock } from "../core/heads.ts";
import type { Body, PendingBlock, PendingChange, PendingExtension } from "../core/view.ts";
import type { LogIndex, MatchedLog } from "../ethereum/logIndex.ts";
import type { Log } from "../telemetry/telemetry.ts";
import { createNotification } from "./notification.ts";
import type { Ask } from "./sealedLogs.ts";
import { parseTransactions, readSealedTransactions } from "./sealedTransactions.ts";
import { createSerialQueue } from "./serialQueue.ts";
import { matchedLogs } from "./subscribedLog.ts";
import { broadcast, type Subscription } from "./subscriber.ts";

/** Who wants what of the blocks being built. */
export interface FlashblockAudience {
  readonly blocks: ReadonlySet<Subscription>;
  readonly hashes: ReadonlySet<Subscription>;
  /** Transactions whole, with their logs. */
  readonly transactions: ReadonlySet<Subscription>;
  /** The same, of those transactions alone that have a log which matches. */
  readonly matching: Pick<LogIndex<Subscription>, "size" | "match">;
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

/** The hashes of a block's transactions that were sent. */
interface Told {
  readonly hashes: Set<string>;
  readonly whole: Set<string>;
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

interface Whole {
  readonly body: Body;
  readonly logs: readonly MatchedLog[];
}

const formatWhole = (transaction: object, receipt: Record<string, unknown>): Whole => ({
  body: encoder.encode(JSON.stringify({ ...transaction, ...fromReceipt(receipt) })),
  logs: matchedLogs(receipt.logs),
});

/** Undefined while the receipt is not known: its logs are announced later. */
const withReceipt = (block: PendingBlock, index: number): Whole | undefined => {
  const transaction = block.transaction(index);
  const receipt = block.receipt(index);
  if (!transaction || !receipt) return undefined;
  return formatWhole(JSON.parse(decoder.decode(transaction)), JSON.parse(decoder.decode(receipt)));
};

export const createFlashblocks = ({ audience, head, ask, onDelivered, log }: FlashblocksOptions): Flashblocks => {
  const inOrder = createSerialQueue((err) => log.warn({ err }, "a sealed block could not be told to subscriptions"));
  /** Told transactions by their block's number; a number that is here has been announced. */
  const told = new Map<bigint, Told>();

  let nodeBody: Body = Buffer.alloc(0);

  const toldOf = (number: bigint): Told => {
    const known = told.get(number) ?? { hashes: new Set(), whole: new Set() };
    told.set(number, known);
    return known;
  };

  const sendBlock = (body: Body): void =>
    onDelivered("newFlashblocks", broadcast(createNotification(body), audience.blocks));

  const send = (body: Body, to: ReadonlySet<Subscription>): void => {
    if (to.size > 0) onDelivered("newFlashblockTransactions", broadcast(createNotification(body), to));
  };

  const sendHash = ({ hashes }: Told, hash: string): void => {
    if (hashes.has(hash)) return;
    hashes.add(hash);
    if (audience.hashes.size > 0) send(encoder.encode(`"${hash}"`), audience.hashes);
  };

  const wantsWhole = (): boolean => audience.transactions.size > 0 || audience.matching.size > 0;

  const receiversOf = (logs: readonly MatchedLog[]): ReadonlySet<Subscription> => {
    if (audience.matching.size === 0) return audience.transactions;
    const receivers = new Set(audience.transactions);
    for (const log of logs) for (const subscription of audience.matching.match(log)) receivers.add(subscription);
    return receivers;
  };

  /** Sends each transaction once. `format` returns undefined if its receipt is not known yet. */
  const sendWhole = ({ whole }: Told, hash: string, format: () => Whole | undefined): void => {
    if (whole.has(hash)) return;
    const made = wantsWhole() ? format() : undefined;
    if (made === undefined && wantsWhole()) return;
    whole.add(hash);
    if (made) send(made.body, receiversOf(made.logs));
  };

  const extend = ({ block, fromTransaction, toTransaction }: PendingExtension): void => {
    const known = toldOf(block.number);
    for (let index = fromTransaction; index < toTransaction; index++) {
      const hash = block.transactionHashes[index];
      if (hash === undefined) continue;
      sendHash(known, hash);
      sendWhole(known, hash, () => withReceipt(block, index));
    }
  };

  const sealed = async ({ number, hash }: RingBlock): Promise<void> => {
    const isAnnounced = told.has(number);
    const known = toldOf(number);
    const wantsBlock = audience.blocks.size > 0 && !isAnnounced;
    if (!wantsBlock && audience.hashes.size === 0 && !wantsWhole()) return;
    const block = await readSealedTransactions(ask, hash, wantsWhole);
    if (wantsBlock) sendBlock(block.body);
    for (const { hash: of, transaction, receipt } of block.transactions) {
      sendHash(known, of);
      sendWhole(known, of, () => formatWhole(transaction, receipt));
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
        sendHash(known, String(hash));
      }
    },
    onHead: ({ heads, from, to }) => {
      for (const { number } of from) told.delete(number);
      for (const block of to) inOrder(() => sealed(block));
      for (const old of told.keys()) if (old < heads.latest.number - MAX_BLOCKS) told.delete(old);
    },
  };
};
