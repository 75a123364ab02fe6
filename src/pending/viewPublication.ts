import { LRUCache } from "lru-cache";
import { type Heads, isCanonicalIn } from "../core/heads.ts";
import type { PendingChange, PendingExtension, PendingView, View } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import type { BlockPart, PendingBlockState, PendingChain } from "./applyMessage.ts";
import type { BlockFormatter } from "./blockFormatter.ts";
import { isMismatch } from "./executableMessage.ts";
import { createView } from "./pendingView.ts";
import type { Serving } from "./servingDecision.ts";

export interface ViewPublicationOptions {
  readonly formatted: BlockFormatter;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

type WholeView = View & { readonly pending: PendingView };

/** What a view shows. */
interface Content {
  readonly head: Heads;
  /** Their objects stay the same until a message or an outcome changes them. */
  readonly blocks: readonly PendingBlockState[];
  readonly serving: Serving;
}

const isSame = (a: Content, b: Content): boolean =>
  a.head === b.head &&
  a.serving.mode === b.serving.mode &&
  a.serving.blocksFrom === b.serving.blocksFrom &&
  a.serving.stateFrom === b.serving.stateFrom &&
  a.blocks.length === b.blocks.length &&
  a.blocks.every((block, position) => block === b.blocks[position]);

/** Publishes the current view, and each difference to its subscribers. */
export class ViewPublication {
  readonly #options: ViewPublicationOptions;
  readonly #listeners = new Set<(change: PendingChange) => void>();
  readonly #published: PublishedPreconfirmations;
  /** Chains by the hash of the newest block that clients received recently. Each hash belongs to one prefix of a block. */
  readonly #recent: LRUCache<Hash, PendingChain>;
  #current: WholeView | undefined;
  /** Of the current view. */
  #content: Content | undefined;

  constructor(options: ViewPublicationOptions) {
    this.#options = options;
    this.#published = new PublishedPreconfirmations(options.formatted);
    this.#recent = new LRUCache({ max: MAX_BLOCKS, ttl: TTL_MS, ttlResolution: 0, perf: { now: options.nowMs } });
  }

  get current(): WholeView | undefined {
    return this.#current;
  }

  subscribe(listener: (change: PendingChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Adds the chains that clients may know by the hash of their newest block: another replica may show each of them. If its execution
   * contradicts a block, a node answers for its hash.
   */
  addPrefixes(prefixes: readonly PendingChain[]): void {
    this.#recent.purgeStale();
    for (const chain of prefixes) {
      const newest = chain.blocks.at(-1);
      if (newest !== undefined && !isContradicted(newest)) {
        this.#recent.set(this.#options.formatted.format(newest).hash, chain);
      }
    }
  }

  /** `blocks` are the pending blocks above the head, as far as they are shown. */
  publish(head: Heads, blocks: readonly PendingBlockState[], serving: Serving): void {
    const content = { head, blocks, serving };
    if (this.#content && isSame(content, this.#content)) {
      return;
    }
    const view = this.#build(content);
    this.#content = content;
    this.#current = view;
    const extended = serving.blocksFrom === "view" ? this.#published.extend(blocks) : [];
    for (const listener of this.#listeners) {
      listener({ view, extended });
    }
  }

  #build({ head, blocks, serving }: Content): WholeView {
    const pending = createView({
      ...serving,
      formatted: this.#options.formatted,
      chain: { base: head.latest, extraBlockFields: {}, blocks },
      // If the hash of the last message is the sealed block's hash, it identifies the sealed block.
      chainAt: (hash) => {
        const chain = this.#recent.get(hash);
        const number = chain?.blocks.at(-1)?.environment.number;
        return number !== undefined && isCanonicalIn(head, { number, hash }) ? undefined : chain;
      },
    });
    return { heads: head, pending };
  }
}

const TTL_MS = 10_000;
const MAX_BLOCKS = 1_024;

/** Whether the execution shows that a field of a message is wrong. The hash may be that of another block. */
const isContradicted = ({ parts }: PendingBlockState): boolean =>
  parts.some(({ unverified }) => isMismatch(unverified));

/** The record of published pre-confirmations: each message is published once, and its logs once. The sealed block takes them back. */
class PublishedPreconfirmations {
  readonly #formatted: BlockFormatter;
  /** Whether a published message had receipts. A block that is hidden and shown again has the same messages. */
  readonly #published = new WeakMap<FeedMessage, boolean>();

  constructor(formatted: BlockFormatter) {
    this.#formatted = formatted;
  }

  /** Returns what these pending blocks, all above the head, have beyond the published ones. */
  extend(blocks: readonly PendingBlockState[]): readonly PendingExtension[] {
    const extended = blocks.flatMap((block) => this.#extend(block));
    for (const part of blocks.flatMap(({ parts }) => parts)) {
      this.#published.set(part.message, hasReceipts(part));
    }
    return extended;
  }

  #extend(block: PendingBlockState): PendingExtension[] {
    return [
      { parts: block.parts.filter((part) => this.#hasNewReceipts(part)), kind: "logs" } as const,
      { parts: block.parts.filter(({ message }) => !this.#published.has(message)), kind: "transactions" } as const,
    ].flatMap(({ parts, kind }): PendingExtension[] => {
      const [first] = parts;
      const last = parts.at(-1);
      if (!first || !last) {
        return [];
      }
      const toTransaction = last.firstTransaction + last.transactions.length;
      return [{ block: this.#formatted.format(block), fromTransaction: first.firstTransaction, toTransaction, kind }];
    });
  }

  /** Whether the part was published without receipts and has them now. */
  #hasNewReceipts(part: BlockPart): boolean {
    return this.#published.get(part.message) === false && hasReceipts(part);
  }
}

const hasReceipts = ({ transactions }: BlockPart): boolean =>
  transactions.every(({ receipt }) => receipt !== undefined);
