import type { HeadChange } from "../core/heads.ts";
import type { PendingChange, View } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import { RecentFlashblocks } from "../feed/recentFlashblocks.ts";
import { type CurrentViews, sealedView } from "../heads/requestViews.ts";
import type { FindExecuted } from "../state/sources/feedSource.ts";
import type { Executor } from "./executableMessage.ts";
import { createPendingParts, type PendingOptions, type PendingParts } from "./pendingParts.ts";
import { needsNode } from "./servingDecision.ts";

/** A feed that becomes stale is noticed after at most this time. */
const CHECK_MS = 250;
/** The heads are refreshed after this silence of a live feed: the chain may have ended its feed for sub-second blocks. */
const QUIET_MS = 500;

/** The pending state of one chain: turns heads and messages of the feed into immutable views. Before it begins, a view has no pending blocks. */
export class Pending implements CurrentViews {
  /** The newest messages of the feed, for the status page. */
  readonly flashblocks = new RecentFlashblocks();
  readonly #options: PendingOptions;
  readonly #parts: PendingParts;
  readonly #stops: (() => void)[] = [];

  constructor(options: PendingOptions) {
    this.#options = options;
    this.#parts = createPendingParts(options, { executed: () => this.#onExecuted(), probed: () => this.#publish() });
  }

  /** Begins to follow heads and feed. `executor` executes the feed's messages. Undefined: the chain's rules are not known. */
  begin(executor: Executor | undefined): void {
    const { heads, openFeed } = this.#options;
    this.#parts.pipeline.begin(executor);
    const first = heads.current();
    if (first) {
      this.#onHead({ heads: first, from: [], to: [] });
    }
    this.#stops.push(heads.subscribe((change) => this.#onHead(change)));
    const feed = openFeed?.(
      (message) => this.#onMessage(message),
      () => heads.blockTimeMs,
    );
    if (feed) {
      this.#stops.push(() => feed.close());
    }
    const timer = setInterval(() => this.#check(), CHECK_MS);
    this.#stops.push(() => clearInterval(timer));
  }

  /** Returns the view that one request reads everything from. Throws RpcError (503) before the first head. */
  view(): View {
    const { probe, publication } = this.#parts;
    probe.markUsed();
    return publication.current ?? sealedView(this.#options.chain, this.#options.heads);
  }

  /** Records that a client has named `pending`. */
  markPendingRead(): void {
    this.#parts.probe.markRead();
  }

  /** Calls the listener synchronously with each new view. */
  subscribe(listener: (change: PendingChange) => void): () => void {
    return this.#parts.publication.subscribe(listener);
  }

  /** Returns what the feed's messages have executed of a sealed block. Waits until the block is compared with the pending one. */
  readonly findExecuted: FindExecuted = (...read) => this.#parts.reconciliation.executedBlocks.find(...read);

  /** Known state may be wrong: the messages are executed again, on no value that is known now. */
  forget(): void {
    this.#parts.pipeline.restart();
    this.#publish();
  }

  /** Records a transaction that a node accepted through forebay. The sender's pending nonce counts it, here at once. */
  async recordSubmitted(hash: Hash, sender: Address, nonce: bigint): Promise<void> {
    const { shared, local } = this.#parts;
    await (shared ?? local).recordSubmitted(hash, sender, nonce);
  }

  /** Advances `nonce` past the sender's consecutive transactions that a node accepted through this or another replica. */
  async advanceNonce(sender: Address, nonce: bigint): Promise<bigint> {
    const { shared, local } = this.#parts;
    return (shared ?? local).advance(sender, nonce);
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) {
      stop();
    }
    await this.#parts.pipeline.close();
  }

  /** The view shows the message once its execution ends: see #onExecuted. */
  #onMessage(message: FeedMessage): void {
    this.flashblocks.note(message);
    const { intake, pipeline, reconciliation } = this.#parts;
    const head = this.#options.heads.current();
    if (!head) {
      return;
    }
    if (intake.receive(message, head.latest) && reconciliation.isIdle) {
      pipeline.setBlocks(intake.blocks);
    }
    // A buffered message can show a gap.
    this.#publish();
  }

  #onHead({ heads, from }: HeadChange): void {
    const { baseFees, intake, reconciliation, transactionFields, local } = this.#parts;
    baseFees.follow(heads);
    intake.follow(heads.latest);
    reconciliation.add(from);
    reconciliation.reconcileHead(heads);
    this.#publish();
    if (this.#options.openFeed !== undefined) {
      transactionFields
        .refresh(heads.latest.hash)
        .catch((err: unknown) => this.#debug({ err }, "transaction fields not read"));
    }
    local.review().catch((err: unknown) => this.#debug({ err }, "submitted transactions not checked"));
  }

  #onExecuted(): void {
    const { intake, pipeline, reconciliation } = this.#parts;
    const head = this.#options.heads.current();
    if (head) {
      const isChanged = intake.review(head.latest);
      reconciliation.reconcileHead(head);
      if (isChanged && reconciliation.isIdle) {
        pipeline.setBlocks(intake.blocks);
      }
    }
    this.#publish();
  }

  #publish(): void {
    const { pipeline, probe, decision, publication } = this.#parts;
    const head = this.#options.heads.current();
    if (!head) {
      return;
    }
    const { chain: shown, count, prefixes, isCut } = pipeline.shown();
    const blocks = shown.blocks.filter(({ environment }) => environment.number > head.latest.number);
    const serving = decision.decide(head, blocks, isCut);
    if (serving.blocksFrom === "view") {
      pipeline.markShown(count);
      publication.addPrefixes(prefixes);
    }
    if (needsNode(serving.mode)) {
      probe.refresh(head.latest.number);
    }
    publication.publish(head, blocks, serving);
  }

  #check(): void {
    this.#refreshIfQuiet();
    this.#measureFeed();
    this.#publish();
  }

  /** A chain without a feed, or one that has ended its feed for sub-second blocks, has no age of a feed: an alert reads it. */
  #measureFeed(): void {
    const { openFeed, chain, telemetry } = this.#options;
    const { intake, decision } = this.#parts;
    if (openFeed === undefined) {
      return;
    }
    const { feedAgeSeconds } = telemetry.metrics;
    if (decision.backend === "native") {
      feedAgeSeconds.remove({ chain });
    } else {
      feedAgeSeconds.set({ chain }, intake.ageMs / 1_000);
    }
  }

  /** Refreshes the heads only while views are used. An idle chain causes no requests. */
  #refreshIfQuiet(): void {
    const { decision, intake, probe } = this.#parts;
    const isQuiet = intake.ageMs > QUIET_MS;
    if (decision.backend !== "feed" || !isQuiet || intake.isStale || !probe.isInUse()) {
      return;
    }
    this.#options.heads.refresh().catch((err: unknown) => this.#debug({ err }, "heads not refreshed"));
  }

  #debug(fields: object, message: string): void {
    const { chain, telemetry } = this.#options;
    telemetry.log.debug({ chain, ...fields }, message);
  }
}
