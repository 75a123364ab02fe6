import type { HeadChange, Heads, RingBlock } from "../chain/heads.ts";
import type { Address, Hash } from "../chain/hex.ts";
import type { PendingChange, PendingView, View } from "../chain/view.ts";
import { type Feed, idleDeadlineMs } from "../feed/client.ts";
import type { Flashblock } from "../feed/message.ts";
import { emptySequence, follow, isDegraded, receive } from "../feed/sequence.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry.ts";
import { createAcceptedNonces } from "./acceptedNonces.ts";
import { createAnnounced } from "./announced.ts";
import type { Executor } from "./execution.ts";
import { createFolding, type FoldingOptions } from "./folding.ts";
import { alsoShownBy, type HeadSource } from "./headSource.ts";
import { type Backend, decideBackend, decideServing, needsNode, type Serving } from "./mode.ts";
import { createNodeProbe } from "./nodeProbe.ts";
import { createRecentHashes } from "./recentHashes.ts";
import { type Passed, reconcile } from "./reconcile.ts";
import { isSealingFast } from "./sealingFast.ts";
import { createSharedNonces, type SharedValues } from "./sharedNonces.ts";
import { createTransactionShape } from "./transactionShape.ts";
import { createVanished } from "./vanished.ts";
import { createView } from "./view.ts";

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
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
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
  accepted(hash: Hash, sender: Address, nonce: bigint): void;
  /** `nonce` raised over the consecutive transactions of that sender that a node accepted through this or another replica. */
  raiseNonce(sender: Address, nonce: bigint): Promise<bigint>;
  close(): Promise<void>;
}

const LATE_AFTER_MS = 100;
const CHECK_MS = 250;
/** A live feed that sends nothing for so long may have ended, on a chain that now seals faster than it is looked at. */
const QUIET_MS = 500;

/** Holds a chain's current view: heads and feed come in, one immutable view after another comes out. */
export const createPending = (options: PendingOptions): Pending => {
  const { chain, heads, executor, ask } = options;
  const { log, metrics } = options.telemetry;
  const now = options.now ?? (() => performance.now());
  const limits = { maxDepth: options.maxDepth };
  const listeners = new Set<(change: PendingChange) => void>();
  const announced = createAnnounced();
  const recent = createRecentHashes(now);
  let sequence = emptySequence;
  let appliedAtMs: number | undefined;
  let backend: Backend | undefined;
  /** Heads that were seen while an execution of a block below them was awaited; reconciled together. */
  let unsettled: RingBlock[] | undefined;

  const blockTimeMs = (): number => heads.blockTimeMs;
  const isFeedLive = (): boolean => appliedAtMs !== undefined && now() - appliedAtMs <= idleDeadlineMs(blockTimeMs());

  const nonces = createAcceptedNonces({
    find: (hashes) => Promise.all(hashes.map((hash) => ask("eth_getTransactionByHash", [hash]))),
    head: () => heads.current()?.latest.number ?? 0n,
    now,
    onDropped: (sender, nonce) => shared?.drop(sender, nonce),
  });
  const shared = options.sharedValues && createSharedNonces(nonces, options.sharedValues);

  const vanished = createVanished({
    ask,
    onVanished: (count, removed) => {
      metrics.pendingVanished.inc({ chain }, count);
      log.warn({ chain, count }, "pre-confirmed transactions were not sealed");
      if (current && removed.length > 0) emit({ view: current, extended: [], removed });
    },
    onDifference: (passed) => countDifferences(passed),
  });

  const shape = createTransactionShape(ask, now);
  const probe = createNodeProbe({ ask, now, onChange: () => publish() });

  const onExecuted: FoldingOptions["onExecuted"] = ({ unproven, cause }, { number, index }, durationMs) => {
    metrics.pendingExecuteSeconds.observe({ chain }, durationMs / 1000);
    if (!unproven) return;
    metrics.pendingMismatches.inc({ chain, what: unproven });
    log.warn({ chain, number, index, what: unproven, cause }, "a message's state is not served from here");
  };
  const folding = createFolding({ executor, lateAfterMs: LATE_AFTER_MS, onChange: () => onFolded(), onExecuted });

  const serve = (head: Heads, pendingBlocks: number, isProven: boolean): Serving => {
    const next = decideBackend(backend, {
      configured: options.mode,
      hasFeeds: options.openFeed !== undefined,
      isFeedLive: isFeedLive(),
      isSealingFast: isSealingFast(head),
    });
    if (next !== backend) {
      log.info({ chain, backend: next }, "pending has a source");
      heads.setNative(next === "native");
    }
    backend = next;
    return decideServing({
      backend,
      isFeedLive: isFeedLive(),
      hasBlocks: pendingBlocks > 0,
      isProven,
      isDegraded: isDegraded(sequence),
      nodeBuilds: probe.nodeBuilds(),
    });
  };

  const build = (head: Heads) => {
    const blocks = folding.chain().blocks.filter(({ environment }) => environment.number > head.latest.number);
    const isProven = blocks.every(({ parts }) => parts.every(({ changes }) => changes !== undefined));
    const serving = serve(head, blocks.length, isProven);
    const pending = createView({
      ...serving,
      chain: { base: head.latest, alsoShown: {}, blocks },
      // Where the last message told the hash that the block was sealed with, the sealed block is meant.
      byHash: (hash) => {
        const block = recent.find(hash);
        return block && head.at(block.number)?.hash === hash ? undefined : block;
      },
      raiseNonce: nonces.raise,
    });
    return { view: { heads: head, pending }, blocks: serving.blocksFrom === "view" ? blocks : [] };
  };

  let current: (View & { readonly pending: PendingView }) | undefined;

  const emit = (change: PendingChange): void => {
    for (const listener of listeners) listener(change);
  };

  const isNew = (next: View & { readonly pending: PendingView }): boolean =>
    current === undefined ||
    next.heads !== current.heads ||
    next.pending.id !== current.pending.id ||
    next.pending.mode !== current.pending.mode ||
    next.pending.blocksFrom !== current.pending.blocksFrom ||
    next.pending.stateFrom !== current.pending.stateFrom;

  const publish = (): void => {
    const head = heads.current();
    if (!head) return;
    const { view, blocks } = build(head);
    if (needsNode(view.pending.mode)) probe.refresh(view.heads.latest.number);
    if (!isNew(view)) return;
    current = view;
    for (const block of view.pending.blocks) recent.add(block);
    const { extended, removed, dropped } = announced.next(blocks, view.heads.latest.number);
    for (const { number, part } of dropped) vanished.suspect(number, [part]);
    vanished.clear(blocks.flatMap(({ parts }) => parts));
    metrics.feedLead.set({ chain }, view.pending.blocks.length);
    emit({ view, extended, removed });
  };

  const settle = (): void => {
    const head = heads.current();
    if (!head || !unsettled || folding.awaits(head.latest.number)) return;
    const { latest } = head;
    if (folding.chain().base.hash === latest.hash) {
      unsettled = undefined;
      return;
    }
    const change: HeadChange = { heads: head, from: unsettled, to: [] };
    unsettled = undefined;
    const folded = folding.chain();
    const { name, passed, isExecuted } = reconcile(folded, change, options);
    if (name === "reorganised") log.warn({ chain, head: latest.number }, "pending blocks were orphaned");
    // Where transactions differ, the sealed block's are asked for first.
    for (const each of passed) if (!each.differences.includes("transactions")) countDifferences(each);
    const { hasTimestamp: hasTransactionTimestamp } = shape;
    folding.rebase(latest, isExecuted, { ...alsoShownBy(head), hasTransactionTimestamp });
    folding.follow(sequence.blocks);
    findVanished(head, passed);
  };

  const countDifferences = ({ differences }: Passed): void => {
    for (const what of differences) metrics.pendingMismatches.inc({ chain, what });
  };

  const findVanished = (head: Heads, passed: readonly Passed[]): void => {
    vanished.settle(head, passed).catch((err: unknown) => log.debug({ chain, err }, "sealed block not compared"));
  };

  const onFolded = (): void => {
    settle();
    publish();
  };

  const onHead = ({ heads: head, from }: HeadChange): void => {
    const followed = follow(sequence, head.latest, limits);
    // What was held for this head has come into its place.
    if (followed.blocks.some((block) => !sequence.blocks.includes(block))) appliedAtMs = now();
    sequence = followed;
    unsettled = [...(unsettled ?? []), ...from];
    settle();
    publish();
    if (options.openFeed !== undefined) {
      shape.learn(head.latest.hash).catch((err: unknown) => log.debug({ chain, err }, "no transaction to learn from"));
    }
    nonces.review().catch((err: unknown) => log.debug({ chain, err }, "accepted transactions not reviewed"));
  };

  const onMessage = (message: Flashblock): void => {
    const head = heads.current();
    if (!head) return;
    const step = receive(sequence, message, head.latest, limits);
    metrics.feedMessages.inc({ chain, decision: step.decision });
    if (step.decision === "gap") metrics.feedGaps.inc({ chain });
    const isApplied = step.state.blocks !== sequence.blocks;
    sequence = step.state;
    if (!isApplied) return;
    appliedAtMs = now();
    if (!unsettled) folding.follow(sequence.blocks);
    publish();
  };

  /** Only while somebody asks: an idle chain costs no calls. */
  const lookIfQuiet = (): void => {
    const isQuiet = appliedAtMs !== undefined && now() - appliedAtMs > QUIET_MS;
    if (backend !== "feed" || !isQuiet || !isFeedLive() || !probe.isAsked()) return;
    heads.refresh().catch((err: unknown) => log.debug({ chain, err }, "heads not refreshed"));
  };

  const check = (): void => {
    lookIfQuiet();
    if (appliedAtMs !== undefined) metrics.feedAgeSeconds.set({ chain }, (now() - appliedAtMs) / 1000);
    publish();
  };

  const first = heads.current();
  if (first) onHead({ heads: first, from: [], to: [] });
  const unsubscribe = heads.subscribe(onHead);
  const feed = options.openFeed?.(onMessage, blockTimeMs);
  const timer = setInterval(check, CHECK_MS);

  return {
    view: () => {
      probe.asked();
      if (!current) throw unavailable("no block is known yet");
      return current;
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    accepted: (shared ?? nonces).accept,
    raiseNonce: async (sender, nonce) => (shared ?? nonces).raise(sender, nonce),
    close: async () => {
      clearInterval(timer);
      unsubscribe();
      feed?.close();
      folding.close();
      await executor.close();
    },
  };
};
