import type { HeadChange } from "../core/heads.ts";
import type { PendingChange, View } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Feed } from "../feed/feedClient.ts";
import type { Flashblock } from "../feed/message.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createDroppedTransactions } from "./droppedTransactions.ts";
import type { Executor } from "./execution.ts";
import { createExecutionPipeline, type ExecutionPipelineOptions } from "./executionPipeline.ts";
import { FeedIntake } from "./feedIntake.ts";
import { HeadReconciliation } from "./headReconciliation.ts";
import { type Backend, needsNode } from "./mode.ts";
import { PendingBlocks } from "./pendingBlock.ts";
import type { HeadSource } from "./pendingHeads.ts";
import { createPendingSupportProbe } from "./pendingSupportProbe.ts";
import { ServingDecision } from "./servingDecision.ts";
import { createSharedNonces, type SharedValues } from "./sharedNonces.ts";
import { createSubmittedNonces } from "./submittedNonces.ts";
import { createTransactionShape } from "./transactionShape.ts";
import { ViewPublication } from "./viewPublication.ts";

export interface PendingOptions {
  /** Label of metrics. */
  readonly chain: string;
  readonly mode: "auto" | Backend;
  /** Pending blocks at most. */
  readonly maxDepth: number;
  /** This node's receipts roots are wrong where there are deposits. */
  readonly ignoresReceiptsRoot: boolean;
  readonly heads: HeadSource;
  readonly executor: Executor;
  /** Opens the chain's feeds; absent where it has none. */
  readonly openFeed?: (onMessage: (message: Flashblock) => void, blockTimeMs: () => number) => Feed;
  /** The result of one read, as JSON value, from the nodes; rejects if none answers. */
  readonly read: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** Where there are other replicas: what was sent through them counts too. */
  readonly sharedValues?: SharedValues | undefined;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Milliseconds of a clock that does not go back; for tests. */
  readonly now?: () => number;
}

export interface Pending {
  /** What a request takes and reads everything from. Throws RpcError (503) while no head is known. */
  view(): View;
  /** Called at once with each new view. */
  subscribe(listener: (change: PendingChange) => void): () => void;
  /** A node accepted this transaction through here: the sender's pending nonce counts it. */
  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void;
  /** `nonce` raised over the consecutive transactions of that sender that a node accepted through this or another replica. */
  advanceNonce(sender: Address, nonce: bigint): Promise<bigint>;
  close(): Promise<void>;
}

const CHECK_MS = 250;
/** However long a message has waited for others, its own execution may take so long. */
const MIN_EXECUTION_MS = 100;
/** A live feed that sends nothing for so long may have ended, on a chain that now seals faster than it is looked at. */
const QUIET_MS = 500;

type Parts = ReturnType<typeof createParts>;

const createNonces = ({ read, heads, sharedValues, now = () => performance.now() }: PendingOptions) => {
  const local = createSubmittedNonces({
    find: (hashes) => Promise.all(hashes.map((hash) => read("eth_getTransactionByHash", [hash]))),
    head: () => heads.current()?.latest.number ?? 0n,
    now,
    onDropped: (sender, nonce) => shared?.drop(sender, nonce),
  });
  const shared = sharedValues && createSharedNonces(local, sharedValues);
  return { local, shared };
};

/** `onChange`: an execution came, or the node's pending block is known. */
const createParts = (options: PendingOptions, onChange: { executed(): void; probed(): void }) => {
  const { chain, heads, executor, read, telemetry } = options;
  const { log, metrics } = telemetry;
  const now = options.now ?? (() => performance.now());
  const blockTimeMs = (): number => heads.blockTimeMs;
  const nonces = createNonces(options);
  const formatted = new PendingBlocks();
  const dropped = createDroppedTransactions({
    read,
    formatted,
    onDropped: (count, removed) => {
      metrics.pendingVanished.inc({ chain }, count);
      log.warn({ chain, count }, "pre-confirmed transactions were not sealed");
      publication.publishRemoved(removed);
    },
    onDifference: (passed) => reconciliation.countDifferences(passed),
  });
  const onExecuted: ExecutionPipelineOptions["onExecuted"] = ({ unverified, cause }, { number, index }, durationMs) => {
    metrics.pendingExecuteSeconds.observe({ chain }, durationMs / 1000);
    if (!unverified) return;
    metrics.pendingMismatches.inc({ chain, what: unverified });
    log.warn({ chain, number, index, what: unverified, cause }, "a message's state is not served from here");
  };
  /** A prefix is served for a block time at most after the message that follows it has arrived. */
  const lateAfterMs = ({ receivedMs = now() }: Flashblock): number =>
    Math.max(blockTimeMs() - (now() - receivedMs), MIN_EXECUTION_MS);
  const pipeline = createExecutionPipeline({ executor, lateAfterMs, onChange: onChange.executed, onExecuted });
  const probe = createPendingSupportProbe({ read, now, onChange: onChange.probed });
  const feed = new FeedIntake({ ...options, blockTimeMs, metrics, now });
  const decision = new ServingDecision({
    ...options,
    hasFeeds: options.openFeed !== undefined,
    feed,
    nodeBuilds: probe.nodeBuilds,
  });
  const shape = createTransactionShape(read, now);
  const reconciliation = new HeadReconciliation({ ...options, feed, pipeline, shape, dropped });
  const publication = new ViewPublication({ advanceNonce: nonces.local.advance, dropped, formatted, now });
  return { ...nonces, pipeline, probe, feed, decision, shape, reconciliation, publication };
};

/** Heads and feed come in, one immutable view after another comes out. */
class PendingTracker implements Pending {
  readonly #options: PendingOptions;
  readonly #parts: Parts;
  readonly #stops: (() => void)[] = [];
  /** When the view changes by time alone. */
  #wake: NodeJS.Timeout | undefined;

  constructor(options: PendingOptions) {
    const { heads, openFeed } = options;
    this.#options = options;
    this.#parts = createParts(options, { executed: () => this.#onExecuted(), probed: () => this.#publish() });
    const first = heads.current();
    if (first) this.#onHead({ heads: first, from: [], to: [] });
    this.#stops.push(heads.subscribe((change) => this.#onHead(change)));
    const feed = openFeed?.(
      (message) => this.#onMessage(message),
      () => heads.blockTimeMs,
    );
    if (feed) this.#stops.push(() => feed.close());
    const timer = setInterval(() => this.#check(), CHECK_MS);
    this.#stops.push(() => clearInterval(timer));
  }

  view(): View {
    const { probe, publication } = this.#parts;
    probe.markUsed();
    if (!publication.current) throw unavailable("no block is known yet");
    return publication.current;
  }

  subscribe(listener: (change: PendingChange) => void): () => void {
    return this.#parts.publication.subscribe(listener);
  }

  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void {
    const { shared, local } = this.#parts;
    (shared ?? local).recordSubmitted(hash, sender, nonce);
  }

  async advanceNonce(sender: Address, nonce: bigint): Promise<bigint> {
    const { shared, local } = this.#parts;
    return (shared ?? local).advance(sender, nonce);
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#parts.pipeline.close();
    clearTimeout(this.#wake);
    await this.#options.executor.close();
  }

  #onMessage(message: Flashblock): void {
    const { feed, pipeline, reconciliation } = this.#parts;
    const head = this.#options.heads.current();
    if (!head) return;
    if (feed.receive(message, head.latest) && reconciliation.isIdle) pipeline.follow(feed.blocks);
    // A message that is held may have shown a gap.
    this.#publish();
  }

  #onHead({ heads, from }: HeadChange): void {
    const { feed, reconciliation, shape, local } = this.#parts;
    feed.follow(heads.latest);
    reconciliation.add(from);
    reconciliation.reconcileHead(heads);
    this.#publish();
    if (this.#options.openFeed !== undefined) {
      shape.learn(heads.latest.hash).catch((err: unknown) => this.#debug({ err }, "no transaction to learn from"));
    }
    local.review().catch((err: unknown) => this.#debug({ err }, "accepted transactions not reviewed"));
  }

  #onExecuted(): void {
    const head = this.#options.heads.current();
    if (head) this.#parts.reconciliation.reconcileHead(head);
    this.#publish();
  }

  #publish(): void {
    const { pipeline, probe, decision, publication } = this.#parts;
    const { chain, heads, telemetry } = this.#options;
    const head = heads.current();
    if (!head) return;
    const blocks = pipeline.chain().blocks.filter(({ environment }) => environment.number > head.latest.number);
    const serving = decision.decide(head, blocks);
    if (needsNode(serving.mode)) probe.refresh(head.latest.number);
    publication.publish(head, blocks, serving);
    telemetry.metrics.feedLead.set({ chain }, serving.blocksFrom === "view" ? blocks.length : 0);
    this.#wakeAtChange();
  }

  #wakeAtChange(): void {
    const { changesInMs } = this.#parts.feed;
    clearTimeout(this.#wake);
    if (changesInMs !== undefined) this.#wake = setTimeout(() => this.#publish(), changesInMs);
  }

  #check(): void {
    this.#lookIfQuiet();
    this.#parts.feed.measureAge();
    this.#publish();
  }

  /** Only while somebody asks: an idle chain costs no calls. */
  #lookIfQuiet(): void {
    const { decision, feed, probe } = this.#parts;
    const isQuiet = (feed.quietMs ?? 0) > QUIET_MS;
    if (decision.backend !== "feed" || !isQuiet || !feed.isLive || !probe.isInUse()) return;
    this.#options.heads.refresh().catch((err: unknown) => this.#debug({ err }, "heads not refreshed"));
  }

  #debug(fields: object, message: string): void {
    const { chain, telemetry } = this.#options;
    telemetry.log.debug({ chain, ...fields }, message);
  }
}

/** Holds a chain's current view. */
export const createPending = (options: PendingOptions): Pending => new PendingTracker(options);
