import type { ChainConfig } from "../config/schema.ts";
import type { PendingChange, View } from "../core/view.ts";
import type { Address } from "../ethereum/hex.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import { SenderCache } from "../evm/senders/senderCache.ts";
import { createFeed } from "../feed/feedClient.ts";
import { createRecentFlashblocks } from "../feed/recentFlashblocks.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import { type RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { directNodeCall } from "../nodes/directNodeCall.ts";
import { noExecutor } from "../pending/flashblockJob.ts";
import { Pending } from "../pending/pending.ts";
import type { PendingOptions } from "../pending/pendingParts.ts";
import { parseSubmitted, type SubmittedTransaction } from "../pending/submittedTransaction.ts";
import type { EvmThreads } from "../runs/evmThreads.ts";
import { RulesWatch, resolveForks } from "../runs/rulesWatch.ts";
import type { FindExecuted } from "../state/sources/executedSource.ts";
import type { ForwardedReasons } from "../telemetry/forwardedReasons.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { UsageLedger } from "../telemetry/usageLedger.ts";
import { type ChainExecution, type ChainExecutionOptions, createExecution } from "./createExecution.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";

export interface ChainViewsOptions {
  readonly config: ChainConfig;
  readonly upstreams: Upstreams;
  readonly pipeline: Pick<ReadPipeline, "stateStore" | "stated" | "sharedValues">;
  readonly knownState: ChainExecutionOptions["knownState"];
  readonly store: ChainExecutionOptions["store"];
  /** The threads of all chains. */
  readonly threads: EvmThreads;
  readonly forwarded: Pick<ForwardedReasons, "set">;
  readonly budget: MemoryBudget;
  readonly telemetry: Telemetry;
  readonly usages: Pick<UsageLedger, "spending">;
}

export const noHead = (chain: string): RpcError =>
  unavailable(`chain "${chain}": no upstream node has reported a head yet`);

/** The views of one chain, and the execution on them. Both begin when the nodes have identified the chain. */
export class ChainViews {
  /** Resolves when the chain is known. Rejects only if it is closed before. */
  readonly ready: Promise<void>;
  /** The newest messages of the feed, for the status page. */
  readonly flashblocks = createRecentFlashblocks();
  readonly #options: ChainViewsOptions;
  readonly #senders = new SenderCache();
  readonly #listeners = new Set<(change: PendingChange) => void>();
  readonly #callNode: ReturnType<typeof directNodeCall>;
  #pending: Pending | undefined;
  #execution: ChainExecution | undefined;
  #rules: RulesWatch | undefined;
  #isClosed = false;

  constructor(options: ChainViewsOptions) {
    this.#options = options;
    this.#callNode = directNodeCall(options.upstreams.background, () => this.#sealedView());
    this.ready = this.#start();
  }

  get execution(): ChainExecution | undefined {
    return this.#execution;
  }

  /** Undefined while the rules of the chain are not known. */
  get forks(): ChainForks | undefined {
    return this.#rules?.forks;
  }

  /** The system contracts that a node reported. */
  get systemContracts(): readonly Address[] {
    return this.#rules?.systemContracts ?? [];
  }

  /** Returns the current view. Throws RpcError (503) before the first head. */
  view(): View {
    return this.#pending?.view() ?? this.#sealedView();
  }

  /** Records that a client has named `pending`: whether a node builds such a block is read only then. */
  markPendingRead(): void {
    this.#pending?.markRead();
  }

  subscribe(listener: (change: PendingChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns what the feed's messages have executed of a sealed block: see Pending. */
  readonly findExecuted: FindExecuted = (...read) => this.#pending?.findExecuted(...read) ?? "incomplete";

  /** Executes the feed's messages again, on no value that is known now. */
  forget(): void {
    this.#pending?.forget();
  }

  /** Records a raw transaction that a node accepted, for the pending nonce of its sender. Resolves when replicas can read it. */
  async recordSubmitted(raw: string): Promise<SubmittedTransaction | undefined> {
    const transaction = parseSubmitted(raw, this.#senders);
    if (transaction?.sent !== undefined) {
      const { hash, sent } = transaction;
      await this.#pending?.recordSubmitted(hash, sent.sender, sent.nonce);
    }
    return transaction;
  }

  /** Returns `nonce` increased by the consecutive accepted transactions of the sender, of all replicas. */
  async advanceNonce(sender: Address, nonce: bigint): Promise<bigint> {
    return this.#pending?.advanceNonce(sender, nonce) ?? nonce;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#rules?.close();
    await this.#pending?.close();
    await this.#execution?.close();
  }

  #sealedView(): View {
    const { config, upstreams } = this.#options;
    const heads = upstreams.heads.current();
    if (heads === undefined) {
      throw noHead(config.name);
    }
    return { heads };
  }

  async #start(): Promise<void> {
    const {
      config,
      upstreams,
      pipeline,
      knownState,
      store,
      threads,
      budget: memory,
      telemetry,
      usages,
    } = this.#options;
    await upstreams.ready;
    const rules = await this.#watchRules();
    if (this.#isClosed) {
      rules?.close();
      return;
    }
    this.#rules = rules;
    const { stateStore, stated } = pipeline;
    this.#execution =
      rules &&
      createExecution({
        config,
        rules,
        upstreams,
        knownState,
        store,
        stateStore,
        stated,
        senders: this.#senders,
        threads,
        memory,
        telemetry,
        spend: usages.spending(config.name),
      });
    this.#pending = this.#createPending();
    this.#pending.subscribe((change) => {
      for (const listener of this.#listeners) {
        listener(change);
      }
    });
  }

  /** Returns undefined if the rules of the chain are not known. */
  async #watchRules(): Promise<RulesWatch | undefined> {
    const { config, upstreams, forwarded, telemetry } = this.#options;
    const { name: chain } = config;
    const { log } = telemetry;
    const resolved = await resolveForks(
      config.forks,
      upstreams.genesis.chainId,
      this.#callNode,
      config.forksFile,
    ).catch((error: unknown) => {
      log.warn({ err: error, chain }, "the chain's rules could not be read: nothing is executed here");
      return undefined;
    });
    if (resolved === undefined) {
      forwarded.set("rulesUnknown", config.forks !== "none");
      return undefined;
    }
    const rules = new RulesWatch({
      ...resolved,
      forksFile: config.forks === "auto" ? config.forksFile : undefined,
      chain,
      genesisHash: () => upstreams.genesis.hash,
      heads: upstreams.heads,
      callNode: this.#callNode,
      forwarded,
      telemetry,
    });
    await rules.start();
    return rules;
  }

  #createPending(): Pending {
    const { config, upstreams, pipeline, telemetry } = this.#options;
    const { feeds, mode, maxDepth } = config.pending;
    const hasFeed = feeds.length > 0;
    return new Pending({
      chain: config.name,
      mode,
      maxDepth,
      skipsReceiptsRoot: config.quirks.anvilDepositNonce,
      heads: upstreams.heads,
      forks: () => this.forks,
      executor: (hasFeed ? this.#execution?.executor() : undefined) ?? noExecutor,
      senderOf: (hash) => this.#senders.get(hash),
      ...(hasFeed && { openFeed: this.#openFeed }),
      read: this.#callNode,
      sharedValues: pipeline.sharedValues,
      telemetry,
    });
  }

  readonly #openFeed: NonNullable<PendingOptions["openFeed"]> = (onMessage, blockTimeMs) => {
    const { config, budget, telemetry } = this.#options;
    return createFeed({
      chain: config.name,
      urls: config.pending.feeds,
      maxMessageBytes: config.pending.maxMessageBytes,
      memory: budget,
      blockTimeMs,
      onMessage: (message) => {
        this.flashblocks.note(message);
        onMessage(message);
      },
      telemetry,
    });
  };
}
