import { deserialize } from "node:v8";
import type { HeadChange, Heads, RingBlock } from "../core/heads.ts";
import type { PendingChange, PendingView, View } from "../core/view.ts";
import { ZERO_HASH } from "../ethereum/hex.ts";
import type { BlockRing } from "../heads/blockRing.ts";
import { HeadListeners } from "../heads/headListeners.ts";
import type { HeadTracker } from "../heads/headTracker.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { PendingChain } from "../pending/applyMessage.ts";
import { BlockFormatter } from "../pending/blockFormatter.ts";
import { createView } from "../pending/pendingView.ts";
import { RecentPendingHashes } from "../pending/recentPendingHashes.ts";
import type { Channel } from "../threads/channel.ts";
import type { ChainInfo, MainFunctions, NodeFacts, ServingFunctions, ViewUpdate } from "./chainProtocol.ts";
import { type HeadsUpdate, headsOfRing, updateRing } from "./headsUpdate.ts";
import { PendingDecoder, type PendingUpdate } from "./pendingUpdate.ts";
import { type LoopWatch, ViewGate } from "./viewGate.ts";

export type MainChannel = Channel<MainFunctions, ServingFunctions>;

export interface ChainCopyOptions {
  readonly chain: string;
  readonly main: MainChannel;
  readonly watch: LoopWatch;
  onNodes(nodes: readonly NodeFacts[]): void;
  /** Called with errors of listeners. */
  onError(error: unknown): void;
}

/** Within this time, the main process is informed once that clients use the chain. Below the time after which it is idle. */
const ACTIVE_MS = 1_000;
/** After this time, the chain may have become idle in the main process. */
const MAY_BE_IDLE_MS = 20_000;
/** The main process waits for its nodes for 2 s. */
const CATCH_UP_MS = 2_500;

const UNKNOWN: ChainInfo = {
  chainId: 0n,
  genesis: ZERO_HASH,
  blockTimeMs: 2_000,
  isKnown: false,
  executes: false,
  followsState: false,
  answersCalls: false,
};

/** One chain in a serving process: a copy of the views of the main process. */
export class ChainCopy implements HeadTracker {
  readonly gate: ViewGate;
  readonly #options: ChainCopyOptions;
  readonly #headListeners: HeadListeners;
  readonly #viewListeners = new Set<(change: PendingChange) => void>();
  readonly #decoder = new PendingDecoder();
  readonly #formatted = new BlockFormatter();
  readonly #recent = new RecentPendingHashes(this.#formatted, () => performance.now());
  readonly #known = Promise.withResolvers<void>();
  #info = UNKNOWN;
  #ring: BlockRing | undefined;
  #heads: Heads | undefined;
  #view: View | undefined;
  #prepared: { readonly round: number; readonly update: ViewUpdate } | undefined;
  #activeAtMs = Number.NEGATIVE_INFINITY;
  #catchingUp: Promise<void> | undefined;
  #lowestWanted: bigint | undefined;
  /** Facts of the nodes that arrived after the last update was prepared. */
  #newerNodes: readonly NodeFacts[] | undefined;

  constructor(options: ChainCopyOptions) {
    this.#options = options;
    this.gate = new ViewGate(options.watch);
    this.#headListeners = new HeadListeners(options.onError);
    // A chain may be closed before it is known, and nobody may wait for it.
    this.#known.promise.catch(() => undefined);
  }

  /** Resolves when the chain has its genesis, a first head and its rules. Rejects only if it is closed before. */
  get ready(): Promise<void> {
    return this.#known.promise;
  }

  /** The main process chooses the leader. */
  get leader(): undefined {
    return undefined;
  }

  get info(): ChainInfo {
    return this.#info;
  }

  get blockTimeMs(): number {
    return this.#info.blockTimeMs;
  }

  /** Resolves when the first view is known, or if the main process has none yet. */
  attach(): Promise<void> {
    const { main, chain } = this.#options;
    return main.call("attach", { chain });
  }

  current(): Heads | undefined {
    return this.#heads;
  }

  view(): View {
    if (this.#view === undefined) {
      throw unavailable("no block is known yet");
    }
    return this.#view;
  }

  get newest(): RingBlock | undefined {
    return this.#heads?.latest;
  }

  get catchingUp(): Promise<void> | undefined {
    return this.#catchingUp;
  }

  markActive(): void {
    const { main, chain } = this.#options;
    const nowMs = performance.now();
    const sinceMs = nowMs - this.#activeAtMs;
    if (sinceMs < ACTIVE_MS) {
      return;
    }
    this.#activeAtMs = nowMs;
    if (sinceMs < MAY_BE_IDLE_MS) {
      main.notify("markActive", { chain });
      return;
    }
    this.#catchingUp ??= main
      .call("markActive", { chain }, { signal: AbortSignal.timeout(CATCH_UP_MS) })
      // The gate holds requests if the main process does not respond.
      .catch(() => undefined)
      .finally(() => {
        this.#catchingUp = undefined;
      });
  }

  /** The main process has them. */
  get sealed(): readonly [] {
    return [];
  }

  addKnown(): void {
    // The main process reads the blocks.
  }

  /** The main process follows the heads, and shows this. */
  isExcluded(): boolean {
    return false;
  }

  async refresh(): Promise<Heads> {
    const { main, chain } = this.#options;
    await main.call("refresh", { chain });
    if (this.#heads === undefined) {
      throw unavailable("no upstream node has reported a head yet");
    }
    return this.#heads;
  }

  subscribe(listener: (change: HeadChange) => void): () => void {
    return this.#headListeners.subscribe(listener);
  }

  next(signal: AbortSignal): Promise<HeadChange> {
    return this.#headListeners.next(signal);
  }

  subscribeViews(listener: (change: PendingChange) => void): () => void {
    this.#viewListeners.add(listener);
    return () => this.#viewListeners.delete(listener);
  }

  /** The main process decides it. */
  readonly setNative = (): void => undefined;

  /** Before the first view, the chain is not known, so that no node could be checked: the facts wait for it. */
  setNodes(nodes: readonly NodeFacts[]): void {
    if (this.#info !== UNKNOWN) {
      this.#options.onNodes(nodes);
    }
    this.#newerNodes = nodes;
  }

  /** From here on, no request takes the view of before. */
  prepare(round: number, update: Uint8Array): void {
    const { main, chain } = this.#options;
    this.gate.hold();
    main.notifyNow("acknowledge", { chain, round });
    this.#prepared = { round, update: deserialize(update) as ViewUpdate };
    // The update has them, or newer ones.
    this.#newerNodes = undefined;
  }

  commit(round: number): void {
    const prepared = this.#prepared;
    if (prepared?.round !== round) {
      return;
    }
    this.#prepared = undefined;
    const publish = this.#apply(prepared.update);
    this.gate.open();
    publish();
  }

  close(): void {
    const { main, chain } = this.#options;
    main.notify("detach", { chain });
    this.gate.close();
    this.#known.reject(new Error("the chain was closed"));
  }

  /** Replaces the view. Returns the function that informs the listeners of each change. */
  #apply({ changes, info, nodes }: ViewUpdate): () => void {
    this.#info = info;
    this.#options.onNodes(this.#newerNodes ?? nodes);
    const events = changes.map((change) =>
      "heads" in change ? this.#applyHeads(change.heads) : this.#applyPending(change.pending),
    );
    if (info.isKnown) {
      this.#known.resolve();
    }
    return () => {
      for (const publish of events) {
        publish();
      }
    };
  }

  #applyHeads(update: HeadsUpdate): () => void {
    const ring = updateRing(this.#ring, update);
    const heads = headsOfRing(ring, update, (number) => this.#want(number));
    this.#ring = ring;
    this.#heads = heads;
    // The pending part follows in the same round, if the chain has one.
    this.#view = { heads, pending: this.#view?.pending };
    const { from, to } = update;
    return () => this.#headListeners.publish({ heads, from, to });
  }

  #applyPending(update: PendingUpdate): () => void {
    const heads = this.#heads;
    if (heads === undefined) {
      throw new Error("a pending view has no heads");
    }
    const chain = { base: update.base, extraBlockFields: {}, blocks: this.#decoder.decode(update) };
    const pending = this.#createPending(heads, update, chain);
    const view: View = { heads, pending };
    this.#view = view;
    for (const [position] of chain.blocks.entries()) {
      this.#recent.add({ ...chain, blocks: chain.blocks.slice(0, position + 1) });
    }
    const extended = update.extended.flatMap(({ blockId, ...rest }) => {
      const block = this.#decoder.block(blockId);
      return block === undefined ? [] : [{ ...rest, block: this.#formatted.format(block) }];
    });
    const { removed } = update;
    return () => {
      for (const listener of this.#viewListeners) {
        listener({ view, extended, removed });
      }
    };
  }

  #createPending(heads: Heads, update: PendingUpdate, chain: PendingChain): PendingView {
    const { mode, blocksFrom, stateFrom } = update;
    return createView({
      mode,
      blocksFrom,
      stateFrom,
      formatted: this.#formatted,
      chain,
      chainAt: (hash) => {
        const found = this.#recent.find(hash);
        const number = found?.blocks.at(-1)?.environment.number;
        return number !== undefined && heads.at(number)?.hash === hash ? undefined : found;
      },
      // The main process advances it: see `advanceNonce` of the protocol.
      advanceNonce: (_, nonce) => nonce,
    });
  }

  #want(number: bigint): void {
    if (this.#lowestWanted === undefined || number < this.#lowestWanted) {
      this.#lowestWanted = number;
      const { main, chain } = this.#options;
      main.notify("want", { chain, number });
    }
  }
}
