import type { HeadChange } from "../core/heads.ts";
import type { PendingChange, View } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { Feed } from "../feed/feedClient.ts";
import type { Flashblock } from "../feed/message.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { KnownSender } from "./decode.ts";
import { createDroppedTransactions } from "./droppedTransactions.ts";
import type { Executor } from "./execution.ts";
import { createExecutionPipeline, type ExecutionPipelineOptions } from "./executionPipeline.ts";
import { FeedIntake } from "./feedIntake.ts";
import { HeadReconciliation, type HeadReconciliationOptions } from "./headReconciliation.ts";
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
  /** Limit of pending blocks above the head. */
  readonly maxDepth: number;
  /** The node's receipts roots are wrong for blocks with deposits. */
  readonly ignoresReceiptsRoot: boolean;
  readonly heads: HeadSource;
  readonly executor: Executor;
  /** Returns a sender that was recovered before. Default: none is known. */
  readonly senderOf?: KnownSender;
  /** Opens the chain's feeds. Absent if it has none. */
  readonly openFeed?: (onMessage: (message: Flashblock) => void, blockTimeMs: () => number) => Feed;
  /** Returns the parsed result of one call from a node. Rejects if no node answers. */
  readonly read: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** Values that replicas share, so that transactions sent through other replicas count too. */
  readonly sharedValues?: SharedValues | undefined;
  /** Called after each comparison of heads with the pending blocks, with the blocks that equal their execution. */
  readonly onReconciled?: HeadReconciliationOptions["onReconciled"];
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Milliseconds of a monotonic clock. Tests replace it. */
  readonly now?: () => number;
}

/** The pending state of one chain. */
export interface Pending {
  /** Returns the view that one request reads everything from. Throws RpcError (503) before the first head. */
  view(): View;
  /** Calls the listener synchronously with each new view. */
  subscribe(listener: (change: PendingChange) => void): () => void;
  /** Records a transaction that a node accepted through forebay. The sender's pending nonce counts it. */
  recordSubmitted(hash: Hash, sender: Address, nonce: bigint): void;
  /** Advances `nonce` past the sender's consecutive transactions that a node accepted through this or another replica. */
  advanceNonce(sender: Address, nonce: bigint): Promise<bigint>;
  close(): Promise<void>;
}

const CHECK_MS = 250;
/** The shortest deadline of an execution, for a message that waited for others. */
const MIN_EXECUTION_MS = 100;
/** The heads are refreshed after this silence of a live feed: the chain may have ended its feed for sub-second blocks. */
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

/** Creates the parts. `onChange` is called when an execution ends, or when the result of the probe changes. */
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
    if (!unverified) {
      return;
    }
    metrics.pendingMismatches.inc({ chain, what: unverified });
    log.warn({ chain, number, index, what: unverified, cause }, "the state of a flashblock is not verified");
  };
  /** While a message executes, the view shows the message before it. The deadline is one block time after its arrival. */
  const lateAfterMs = ({ receivedMs = now() }: Flashblock): number =>
    Math.max(blockTimeMs() - (now() - receivedMs), MIN_EXECUTION_MS);
  const pipeline = createExecutionPipeline({
    executor,
    senderOf: options.senderOf,
    lateAfterMs,
    onChange: onChange.executed,
    onExecuted,
  });
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

/** Turns heads and messages of the feed into immutable views. */
class PendingTracker implements Pending {
  readonly #options: PendingOptions;
  readonly #parts: Parts;
  readonly #stops: (() => void)[] = [];
  /** Publishes again when a deadline of the feed passes. */
  #deadline: NodeJS.Timeout | undefined;

  constructor(options: PendingOptions) {
    const { heads, openFeed } = options;
    this.#options = options;
    this.#parts = createParts(options, { executed: () => this.#onExecuted(), probed: () => this.#publish() });
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

  view(): View {
    const { probe, publication } = this.#parts;
    probe.markUsed();
    if (!publication.current) {
      throw unavailable("no block is known yet");
    }
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
    for (const stop of this.#stops) {
      stop();
    }
    this.#parts.pipeline.close();
    clearTimeout(this.#deadline);
    await this.#options.executor.close();
  }

  #onMessage(message: Flashblock): void {
    const { feed, pipeline, reconciliation } = this.#parts;
    const head = this.#options.heads.current();
    if (!head) {
      return;
    }
    if (feed.receive(message, head.latest) && reconciliation.isIdle) {
      pipeline.follow(feed.blocks);
    }
    // A buffered message can show a gap.
    this.#publish();
  }

  #onHead({ heads, from }: HeadChange): void {
    const { feed, reconciliation, shape, local } = this.#parts;
    feed.follow(heads.latest);
    reconciliation.add(from);
    reconciliation.reconcileHead(heads);
    this.#publish();
    if (this.#options.openFeed !== undefined) {
      shape.refresh(heads.latest.hash).catch((err: unknown) => this.#debug({ err }, "transaction fields not read"));
    }
    local.review().catch((err: unknown) => this.#debug({ err }, "submitted transactions not checked"));
  }

  #onExecuted(): void {
    const head = this.#options.heads.current();
    if (head) {
      this.#parts.reconciliation.reconcileHead(head);
    }
    this.#publish();
  }

  #publish(): void {
    const { pipeline, probe, decision, publication } = this.#parts;
    const { chain, heads, telemetry } = this.#options;
    const head = heads.current();
    if (!head) {
      return;
    }
    const blocks = pipeline.chain().blocks.filter(({ environment }) => environment.number > head.latest.number);
    const serving = decision.decide(head, blocks);
    if (needsNode(serving.mode)) {
      probe.refresh(head.latest.number);
    }
    publication.publish(head, blocks, serving);
    telemetry.metrics.feedLead.set({ chain }, serving.blocksFrom === "view" ? blocks.length : 0);
    this.#publishAtDeadline();
  }

  #publishAtDeadline(): void {
    const { changesInMs } = this.#parts.feed;
    clearTimeout(this.#deadline);
    if (changesInMs !== undefined) {
      this.#deadline = setTimeout(() => this.#publish(), changesInMs);
    }
  }

  #check(): void {
    this.#refreshIfQuiet();
    this.#parts.feed.measureAge();
    this.#publish();
  }

  /** Refreshes the heads only while views are used. An idle chain causes no requests. */
  #refreshIfQuiet(): void {
    const { decision, feed, probe } = this.#parts;
    const isQuiet = (feed.quietMs ?? 0) > QUIET_MS;
    if (decision.backend !== "feed" || !isQuiet || !feed.isLive || !probe.isInUse()) {
      return;
    }
    this.#options.heads.refresh().catch((err: unknown) => this.#debug({ err }, "heads not refreshed"));
  }

  #debug(fields: object, message: string): void {
    const { chain, telemetry } = this.#options;
    telemetry.log.debug({ chain, ...fields }, message);
  }
}

/** Creates the pending state of one chain. */
export const createPending = (options: PendingOptions): Pending => new PendingTracker(options);
