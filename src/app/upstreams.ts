import type { Clock } from "../core/clock.ts";
import type { Check } from "../core/node.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import type { RpcSource } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Finality } from "../heads/canonicalChain.ts";
import { ChainIdentity } from "../heads/chainIdentity.ts";
import { createHeadTracker, type HeadTracker } from "../heads/headTracker.ts";
import type { HedgeOptions } from "../nodes/hedge.ts";
import { createUpstreamNode, type NodeOptions } from "../nodes/httpUpstreamNode.ts";
import { createNodePool } from "../nodes/nodePool.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createChainVerifier } from "../verification/chainVerifier.ts";
import { type VerifyPool, VerifyThreads } from "../verification/pool.ts";
import type { Verifier, VerifyLevel } from "../verification/verifier.ts";
import { workerEntry } from "./workerEntry.ts";

export interface UpstreamsOptions {
  /** The chain's name, for metrics and messages. */
  readonly chain: string;
  readonly chainId?: number;
  readonly nodes: readonly NodeOptions[];
  readonly attempts?: number;
  readonly hedge?: HedgeOptions;
  readonly breaker?: { readonly failures: number; readonly openMs: number };
  readonly finality?: Finality;
  readonly blockTimeMs?: number;
  readonly maxResponseBytes?: number;
  /** The metric label of a method, from a closed set; default: `other` for all. */
  readonly methodLabel?: (method: string) => string;
  /** A node is suspended because it is of another chain. */
  readonly onWrongChain?: ((error: Error) => void) | undefined;
  readonly clock?: Clock;
  /** How much of what nodes answer is checked; default: nothing. */
  readonly verify?: VerifyLevel;
  /** Checks that are known to fail on this chain. */
  readonly checksOff?: readonly Check[];
  /** Threads that verify; by default this chain has its own. */
  readonly verifyPool?: VerifyPool;
}

/** The nodes of one chain. */
export interface Upstreams extends RpcSource {
  readonly nodes: readonly UpstreamNode[];
  readonly heads: HeadTracker;
  readonly verifier: Verifier;
  /** For questions of forebay's own: they do not count as somebody who asks, so that an idle chain stays idle. */
  readonly quiet: RpcSource;
  /** Known once `ready` has resolved. `hash` changes only where the whole chain began anew. */
  readonly genesis: { readonly chainId: bigint; readonly hash: Hash };
  /** Chain id, genesis and a first head are known. Rejects only if it is closed before. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

const DEFAULT_BREAKER = { failures: 5, openMs: 5_000 };
const DEFAULT_MAX_RESPONSE_BYTES = 150_000_000;

export const createUpstreams = (options: UpstreamsOptions, telemetry: Telemetry): Upstreams => {
  const { chain } = options;
  const { metrics } = telemetry;
  const ending = new AbortController();
  const { signal } = ending;
  const pool = options.verifyPool ?? new VerifyThreads(workerEntry("verification"));
  const names = options.nodes.map(({ name }, index) => name ?? `node${index + 1}`);
  const verifier = createChainVerifier(
    {
      chain,
      level: options.verify ?? "off",
      nodes: names,
      off: options.checksOff ?? [],
      pool,
      onWrongAnswer: (error) => nodes.find(({ name }) => name === error.node)?.recordWrongAnswer(error),
    },
    telemetry,
  );
  const nodes: readonly UpstreamNode[] = options.nodes.map((node, index) =>
    createUpstreamNode(
      {
        ...node,
        name: names[index] ?? "",
        chain,
        verifier,
        hasOther: () => nodes.some((other, at) => at !== index && other.reachable && !other.suspended),
        breaker: options.breaker ?? DEFAULT_BREAKER,
        maxResponseBytes: options.maxResponseBytes ?? DEFAULT_MAX_RESPONSE_BYTES,
        methodLabel: options.methodLabel ?? (() => "other"),
        verifyIdentity: (node) => identity.verify(node),
      },
      telemetry,
    ),
  );

  const identity: ChainIdentity = new ChainIdentity({
    chain,
    chainId: options.chainId === undefined ? undefined : BigInt(options.chainId),
    nodes,
    telemetry,
    signal,
    onWrongChain: options.onWrongChain,
    onIdentified: (node) => {
      const { wsUrl, headers = {} } = options.nodes[nodes.indexOf(node)] ?? {};
      heads.follow(node, wsUrl === undefined ? undefined : { url: wsUrl, headers });
    },
  });

  const heads = createHeadTracker(
    {
      chain,
      finality: options.finality ?? "node",
      identity,
      ...(options.blockTimeMs !== undefined && { blockTimeMs: options.blockTimeMs }),
      ...(options.clock && { clock: options.clock }),
    },
    telemetry,
    signal,
  );

  const first = Promise.withResolvers<void>();
  const ready = first.promise;
  // Whoever awaits it hears of a failure; whoever does not must not end by it.
  ready.catch(() => undefined);
  ready.finally(heads.subscribe(() => first.resolve())).catch(() => undefined);
  signal.addEventListener("abort", () => first.reject(new Error(`chain "${chain}": closed`)), { once: true });
  identity.start();

  const source = createNodePool(nodes, {
    attempts: options.attempts ?? RETRY_LIMITS.pool.defaultAttempts,
    ...(options.hedge && { hedge: options.hedge }),
    onRetry: () => metrics.upstreamRetries.inc({ chain }),
    onHedge: () => metrics.upstreamHedges.inc({ chain }),
  });

  return {
    nodes,
    heads,
    verifier,
    quiet: source,
    get genesis() {
      return { chainId: identity.chainId ?? 0n, hash: identity.genesis };
    },
    ready,
    request: (question, context) => {
      heads.markActive();
      return source.request(question, context);
    },
    close: async () => {
      ending.abort();
      await Promise.all(nodes.map((node) => node.close()));
      if (options.verifyPool === undefined) await pool.close();
    },
  };
};
