import type { ChainConfig } from "../config/schema.ts";
import type { Endpoint, PassThrough } from "../http/endpoint.ts";
import { createPassThroughHandler } from "../http/passThroughHandler.ts";
import { createHandlers, isQuickMethod, methodLabel } from "../methods/handlers.ts";
import { nodeName } from "../nodes/nodeName.ts";
import { createUnitsOf, createUnitTable } from "../state/providerUnits.ts";
import { FeedSource } from "../state/sources/feedSource.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import { createChainDispatch, maxResponseBytesOf } from "./chainDispatch.ts";
import { createChainEndpoint } from "./chainEndpoint.ts";
import { ChainState } from "./chainState.ts";
import { createChainSubscriptions } from "./chainSubscriptions.ts";
import { createPendingViews, type PendingViews } from "./createPendingViews.ts";
import { createReadPipeline } from "./createReadPipeline.ts";
import { createMethodChain } from "./methodChain.ts";
import type { Shared } from "./shared.ts";
import { createUpstreams, type Upstreams } from "./upstreams.ts";

/** One chain with its endpoint. */
export interface ServedChain {
  readonly name: string;
  readonly upstreams: Upstreams;
  readonly views: Pick<PendingViews, "view" | "flashblocks">;
  /** Resolves when genesis, first head and rules are known. Rejects only if the chain is closed before. */
  readonly ready: Promise<void>;
  readonly endpoint: Endpoint;
  close(): Promise<void>;
}

const createChainUpstreams = (config: ChainConfig, shared: Shared): Upstreams =>
  createUpstreams(
    {
      chain: config.name,
      nodes: config.nodes,
      finality: config.finality,
      breaker: config.upstream.breaker,
      attempts: config.upstream.attempts,
      hedge: config.upstream.hedge === false ? undefined : config.upstream.hedge,
      chainId: config.chainId,
      blockTimeMs: config.blockTimeMs,
      maxResponseBytes: maxResponseBytesOf(shared.server),
      memory: shared.budget,
      methodLabel,
      unitsOf: createUnitsOf(config.state.units),
      isQuick: isQuickMethod,
      onWrongChain: shared.onWrongChain,
      verify: config.verify,
      checksOff: config.quirks.anvilDepositNonce ? ["depositReceipts"] : [],
      verifyPool: shared.verifyPool,
    },
    shared.telemetry,
  );

const createPassThrough = (
  { name, passthrough, upstream }: ChainConfig,
  { telemetry }: Shared,
): PassThrough | undefined =>
  passthrough === undefined
    ? undefined
    : createPassThroughHandler({
        target: passthrough,
        timeoutMs: upstream.timeoutMs,
        onFailure: (reason, error) => {
          telemetry.metrics.passThroughFailures.inc({ chain: name, reason });
          if (error !== undefined) {
            telemetry.log.warn({ err: error, chain: name }, "passing through failed");
          }
        },
      });

class ChainRuntime implements ServedChain {
  readonly name: string;
  readonly upstreams: Upstreams;
  readonly views: PendingViews;
  readonly endpoint: Endpoint;
  readonly #ending = new AbortController();
  readonly #subscriptions: Subscriptions;
  readonly #passthrough: PassThrough | undefined;
  readonly #state: ChainState;

  constructor(config: ChainConfig, shared: Shared) {
    const { server, telemetry } = shared;
    const { signal } = this.#ending;
    const upstreams = createChainUpstreams(config, shared);
    const pipeline = createReadPipeline(config, shared, upstreams, signal);
    const feed = config.pending.feeds.length > 0 ? new FeedSource() : undefined;
    const views = createPendingViews({
      config,
      upstreams,
      pipeline,
      onReconciled: feed?.record,
      budget: shared.budget,
      telemetry,
    });
    const state = new ChainState({
      config,
      upstreams,
      pipeline,
      views,
      feed,
      thread: shared.writeSetThread,
      signal,
      telemetry,
    });
    const chain = createMethodChain({ config, server, shared, upstreams, pipeline, views, state });
    const handlers = createHandlers(chain, config.allowNamespaces);
    const subscriptions = createChainSubscriptions({ config, shared, upstreams, views, handlers, signal });
    const dispatch = createChainDispatch({ config, server, handlers, subscriptions, telemetry });
    const passthrough = createPassThrough(config, shared);
    this.name = config.name;
    this.upstreams = upstreams;
    this.views = views;
    this.#subscriptions = subscriptions;
    this.#state = state;
    this.#passthrough = passthrough;
    this.endpoint = createChainEndpoint({ config, shared, upstreams, views, dispatch, passthrough });
  }

  get ready(): Promise<void> {
    return this.views.ready;
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#subscriptions.close();
    this.#passthrough?.close();
    this.#state.close();
    await this.views.close();
    await this.upstreams.close();
  }
}

/** Replaces the changed units of a chain by its whole price table. */
const withPrices = (config: ChainConfig, { prices, units }: Shared["usage"]): ChainConfig => ({
  ...config,
  state: { ...config.state, units: createUnitTable(prices, units, config.state.units) },
});

/** Starts a chain: connects to its nodes, and creates its endpoint. */
export const createChainRuntime = (config: ChainConfig, shared: Shared): ServedChain => {
  shared.telemetry.series.beginChain({
    chain: config.name,
    nodes: config.nodes.map(nodeName),
    parts: new Set(config.pending.feeds.length > 0 ? ["feed"] : []),
  });
  return new ChainRuntime(withPrices(config, shared.usage), shared);
};
