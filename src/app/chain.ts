import { setTimeout as wait } from "node:timers/promises";
import { createUnitsOf, createUnitTable, type UnitsOf } from "../access/providerUnits.ts";
import { openStoredChain } from "../cache/storedChain.ts";
import { originOf } from "../config/providers.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { Address } from "../ethereum/hex.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import { createFeed } from "../feed/feedClient.ts";
import { HeadsBehind } from "../heads/headsBehind.ts";
import { RequestViews, sealedView } from "../heads/requestViews.ts";
import { Upstreams, type UpstreamsOptions } from "../heads/upstreams.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { PassThroughHandler } from "../http/passThroughHandler.ts";
import { trackInFlight } from "../http/trackInFlight.ts";
import { createHandlers, isQuickMethod, methodLabel } from "../methods/handlers.ts";
import { directNodeCall } from "../nodes/directNodeCall.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import { Pending } from "../pending/pending.ts";
import type { PendingOptions } from "../pending/pendingParts.ts";
import { type RulesWatch, watchRules } from "../runs/rulesWatch.ts";
import { ChainState } from "../state/chainState.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import { ChainTelemetry } from "../telemetry/chainTelemetry.ts";
import { ForwardedReasons } from "../telemetry/forwardedReasons.ts";
import { OwnHashes } from "../verification/checkHeader.ts";
import type { ChainBase } from "./chainBase.ts";
import { createChainEndpoint } from "./chainEndpoint.ts";
import { ChainExecution } from "./chainExecution.ts";
import { createChainSubscriptions } from "./chainSubscriptions.ts";
import { type ChainParts, createReadPipeline, expectSealed } from "./createReadPipeline.ts";
import { createMethodChain } from "./methodChain.ts";
import { maxResponseBytesOf, type Shared } from "./shared.ts";

const createUpstreams = (
  config: ChainConfig,
  { usages, server, budget, verifyPool, telemetry }: Shared,
  unitsOf: UnitsOf,
  { known, onWrongChain }: Pick<UpstreamsOptions, "known" | "onWrongChain">,
): Upstreams => {
  const { name: chain, finality, chainId, blockTimeMs, verify } = config;
  const { breaker, attempts, maxWaiting, hedge } = config.upstream;
  const nodes = config.nodes.map((node, index) => ({
    ...{ ...node, origin: originOf(node) },
    budget: usages.budgets.find({ chain, node: nodeName(node, index) }),
  }));
  return new Upstreams(
    {
      ...{ chain, nodes, known, finality, chainId, blockTimeMs, breaker, attempts, maxWaiting, unitsOf, methodLabel },
      ...{ verify, verifyPool, onWrongChain, isQuick: isQuickMethod, onCall: usages.nodeCalls(chain) },
      hedge: hedge.maxShare === 0 ? undefined : hedge,
      agree: config.heads.agree,
      hasFeed: config.pending.feeds.length > 0,
      maxResponseBytes: maxResponseBytesOf(server),
      memory: budget,
      checksOff: config.quirks.anvilDepositNonce ? ["depositReceipts"] : [],
    },
    telemetry,
  );
};

type CallNode = ReturnType<typeof directNodeCall>;

/** One chain: it constructs its parts, starts and ends them. */
export class Chain {
  readonly name: string;
  readonly config: ChainConfig;
  /** Its gauges are shown while the chain is served. */
  readonly measured: ChainTelemetry;
  readonly upstreams: Upstreams;
  readonly pending: Pending;
  /** Why nodes answer calls that forebay could answer. */
  readonly forwarded: ForwardedReasons;
  readonly state: ChainState;
  readonly subscriptions: Subscriptions;
  readonly endpoint: Endpoint;
  /** Resolves when genesis, first head and rules are known. Rejects only if the chain is ended before. */
  readonly ready: Promise<void>;
  readonly #wrongChain = Promise.withResolvers<never>();
  readonly #ending = new AbortController();
  readonly #passthrough: PassThroughHandler | undefined;
  readonly #idle: () => Promise<void>;
  #rules: RulesWatch | undefined;
  #execution: ChainExecution | undefined;
  #isKnown = false;
  #isStarted = false;

  /** `before` is the chain that this one replaces: its blocks, values and answers are taken over. */
  constructor(config: ChainConfig, ofProcess: Shared, before: Chain | undefined) {
    const { name, upstream, passthrough } = config;
    const { prices, units } = ofProcess.usage;
    this.name = name;
    this.config = config;
    this.measured = new ChainTelemetry(ofProcess.telemetry, {
      chain: name,
      nodes: config.nodes.map(nodeName),
      parts: new Set(config.pending.feeds.length > 0 ? ["feed"] : []),
    });
    const { telemetry } = this.measured;
    const shared: Shared = { ...ofProcess, telemetry };
    const { signal } = this.#ending;
    const unitsOf = createUnitsOf(createUnitTable(prices, units, config.state.units));
    // A node of another chain is suspended. The error matters only to `untilReady`.
    this.#wrongChain.promise.catch(() => undefined);
    const replaced = { known: before?.upstreams.heads.sealed, onWrongChain: this.#wrongChain.reject };
    this.upstreams = createUpstreams(config, shared, unitsOf, replaced);
    const { upstreams } = this;
    const base: ChainBase = { config, shared, upstreams, unitsOf, ownHashes: new OwnHashes(), signal };
    const parts: ChainParts = { ...base, pipeline: createReadPipeline(base) };
    this.forwarded = new ForwardedReasons(name, telemetry);
    const callNode = directNodeCall(upstreams.background, () => sealedView(name, upstreams.heads));
    this.pending = this.#createPending(parts, callNode);
    expectSealed(parts.pipeline, this.pending);
    this.ready = this.#begin(parts, callNode);
    this.state = new ChainState(parts, this, before?.state);
    const behind = new HeadsBehind();
    const handlers = createHandlers(createMethodChain(parts, this, behind), config.allowNamespaces, (reason) =>
      telemetry.metrics.notProven.inc({ chain: name, reason }),
    );
    this.subscriptions = createChainSubscriptions(parts, this.pending, handlers);
    this.#passthrough =
      passthrough === undefined
        ? undefined
        : new PassThroughHandler({ chain: name, target: passthrough, timeoutMs: upstream.timeoutMs, telemetry });
    const requestViews = new RequestViews({
      ...{ chain: name, heads: upstreams.heads, views: this.pending, behind, timeoutMs: upstream.timeoutMs },
      ...{ bypassHeader: shared.bypassHeader, minViewWaitMs: shared.server.minViewWaitMs, metrics: telemetry.metrics },
    });
    const { endpoint, idle } = trackInFlight(createChainEndpoint(parts, requestViews, handlers, this.#passthrough));
    this.endpoint = endpoint;
    this.#idle = idle;
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

  /** The chain has its genesis and a first head, and its rules were read. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** What was known of its state before a restart is being read. */
  get isRestoring(): boolean {
    return this.#isKnown && !this.#isStarted && this.state.mayRestore;
  }

  /** The chain id that the nodes returned, or else the configured one. */
  get chainId(): bigint | number | undefined {
    return this.#isKnown ? this.upstreams.genesis.chainId : this.config.chainId;
  }

  /** Resolves when the chain is known. Rejects if a node serves another chain, or at an abort. */
  async untilReady(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    await Promise.race([this.ready, this.#wrongChain.promise, promise]).finally(() =>
      signal.removeEventListener("abort", onAbort),
    );
  }

  /** Begins to follow state. From here on, the chain that this one replaces follows none. Resolves when reads can be answered. */
  async start(): Promise<void> {
    await this.state.begin();
    this.#isStarted = true;
  }

  /** Ends the chain after its last request, or after this time. */
  async drain(timeoutMs: number): Promise<void> {
    const idle = new AbortController();
    const timeout = wait(timeoutMs, undefined, { signal: idle.signal }).catch(() => undefined);
    await Promise.race([this.#idle(), timeout]);
    idle.abort();
    await this.end();
  }

  /** Ends the chain. What is known of its state is saved before. */
  async end(): Promise<void> {
    await this.state.save();
    this.#ending.abort();
    this.subscriptions.close();
    this.#passthrough?.close();
    this.state.close();
    this.#rules?.close();
    await this.pending.close();
    await this.#execution?.close();
    await this.upstreams.close();
  }

  /** What needs the rules of the chain begins when its nodes have identified it. */
  async #begin(parts: ChainParts, callNode: CallNode): Promise<void> {
    const { config, shared, upstreams, pipeline, signal } = parts;
    const { pending, forwarded } = this;
    const { storage, disk, diskMode, telemetry } = shared;
    await upstreams.ready;
    if (storage !== undefined && disk !== undefined) {
      const stored = { chain: config.name, storage, keys: pipeline.keys, telemetry, signal };
      openStoredChain(stored, upstreams.heads, callNode, diskMode === "always");
    }
    const rules = await watchRules(config.forks, upstreams.genesis.chainId, {
      ...{ chain: config.name, forksFile: config.forksFile, genesisHash: () => upstreams.genesis.hash },
      ...{ heads: upstreams.heads, callNode, forwarded, telemetry },
    });
    if (signal.aborted) {
      rules?.close();
      return;
    }
    this.#rules = rules;
    this.#execution = rules && new ChainExecution(parts, { rules, state: this.state });
    const hasFeed = config.pending.feeds.length > 0;
    pending.begin(hasFeed ? this.#execution?.executor() : undefined);
    this.#isKnown = true;
  }

  #createPending({ config, shared: { budget, telemetry }, upstreams, pipeline }: ChainParts, read: CallNode): Pending {
    const { name: chain, quirks } = config;
    const { feeds: urls, mode, maxDepth, maxMessageBytes } = config.pending;
    const { sharedValues, negativeCache } = pipeline;
    const openFeed: PendingOptions["openFeed"] = (onMessage, blockTimeMs) =>
      createFeed({ chain, urls, maxMessageBytes, memory: budget, blockTimeMs, telemetry, onMessage });
    return new Pending({
      ...{ chain, mode, maxDepth, heads: upstreams.heads, read, sharedValues, telemetry },
      skipsReceiptsRoot: quirks.anvilDepositNonce,
      forks: () => this.forks,
      onDropped: (hashes) => negativeCache.unexpectSealed(hashes),
      ...(urls.length > 0 && { openFeed }),
    });
  }
}
