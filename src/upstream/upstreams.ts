import { setTimeout as sleep } from "node:timers/promises";
import { type Hash, ZERO_HASH } from "../chain/hex.ts";
import type { Check } from "../chain/node.ts";
import type { Source } from "../chain/source.ts";
import type { Telemetry } from "../telemetry.ts";
import { createChainVerifier } from "../verify/chainVerifier.ts";
import { type VerifyPool, VerifyThreads } from "../verify/pool.ts";
import type { Verifier, VerifyLevel } from "../verify/verifier.ts";
import type { Finality } from "./canonical.ts";
import type { Clock } from "./clock.ts";
import { createHeadFollower, type HeadFollower } from "./headFollower.ts";
import type { HedgeOptions } from "./hedge.ts";
import { ChainMismatchError, checkIdentity, type Known, readIdentity } from "./identity.ts";
import { routed } from "./routed.ts";
import { createUpstreamNode, type NodeOptions, type UpstreamNode } from "./upstreamNode.ts";

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
  /** A node that came up after `ready` is of another chain: the process cannot go on. */
  readonly onFatal?: (error: Error) => void;
  readonly clock?: Clock;
  /** How much of what nodes answer is checked; default: nothing. */
  readonly verify?: VerifyLevel;
  /** Checks that are known to fail on this chain. */
  readonly checksOff?: readonly Check[];
  /** Threads that verify; by default this chain has its own. */
  readonly verifyPool?: VerifyPool;
}

/** The nodes of one chain. */
export interface Upstreams extends Source {
  readonly nodes: readonly UpstreamNode[];
  readonly heads: HeadFollower;
  readonly verifier: Verifier;
  /** For questions of forebay's own: they do not count as somebody who asks, so that an idle chain stays idle. */
  readonly quiet: Source;
  /** Known once `ready` has resolved. `hash` changes only where the whole chain began anew. */
  readonly genesis: { readonly chainId: bigint; readonly hash: Hash };
  /** Chain id, genesis and a first head are known. Rejects where nodes are not of one chain. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

const DEFAULT_ATTEMPTS = 3;
const DEFAULT_BREAKER = { failures: 5, openMs: 5_000 };
const DEFAULT_MAX_RESPONSE_BYTES = 150_000_000;
const IDENTIFY_PERIOD_MS = 1_000;

export const createUpstreams = (options: UpstreamsOptions, telemetry: Telemetry): Upstreams => {
  const { chain } = options;
  const { log, metrics } = telemetry;
  const ending = new AbortController();
  const { signal } = ending;
  const pool = options.verifyPool ?? new VerifyThreads();
  const names = options.nodes.map(({ name }, index) => name ?? `node${index + 1}`);
  const verifier = createChainVerifier(
    {
      chain,
      level: options.verify ?? "off",
      nodes: names,
      off: options.checksOff ?? [],
      pool,
      onConvicted: (error) => nodes.find(({ name }) => name === error.node)?.convict(error),
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
      },
      telemetry,
    ),
  );

  let known: Known | undefined =
    options.chainId === undefined ? undefined : { chainId: BigInt(options.chainId), hash: ZERO_HASH, node: undefined };

  const heads = createHeadFollower(
    {
      chain,
      finality: options.finality ?? "node",
      genesisHash: () => known?.hash ?? ZERO_HASH,
      onGenesis: (hash) => {
        if (known && known.hash !== hash) {
          known = { ...known, hash };
          log.warn({ chain, genesis: hash }, "the chain has begun anew");
        }
      },
      ...(options.blockTimeMs !== undefined && { blockTimeMs: options.blockTimeMs }),
      ...(options.clock && { clock: options.clock }),
    },
    telemetry,
    signal,
  );

  /** One try. False where the node gave no answer. */
  const identify = async (node: UpstreamNode): Promise<boolean> => {
    let identity: Awaited<ReturnType<typeof readIdentity>>;
    try {
      identity = await readIdentity(node, signal);
    } catch {
      return false;
    }
    if (known) {
      checkIdentity(chain, known, node.name, identity);
    }
    // What was only configured is now confirmed, and a genesis hash that was not known may be.
    known = known && known.hash !== ZERO_HASH ? known : { ...identity, node: node.name };
    node.identified = true;
    const { wsUrl, headers = {} } = options.nodes[nodes.indexOf(node)] ?? {};
    heads.follow(node, wsUrl === undefined ? undefined : { url: wsUrl, headers });
    return true;
  };

  const keepTrying = async (node: UpstreamNode): Promise<void> => {
    log.warn({ chain, node: node.name }, "node cannot be reached; trying again until it can");
    do {
      await sleep(IDENTIFY_PERIOD_MS, undefined, { signal });
    } while (!(await identify(node)));
    log.info({ chain, node: node.name }, "node is reached");
  };

  const start = async (): Promise<void> => {
    const first = Promise.withResolvers<void>();
    const stop = heads.subscribe(() => first.resolve());
    const reached = await Promise.all(nodes.map(identify));
    const late = nodes.filter((_, index) => !reached[index]).map(keepTrying);
    const failed = Promise.all(late).then(() => first.promise);
    // After `ready` nobody hears this promise any more.
    failed.catch((error: unknown) => {
      if (error instanceof ChainMismatchError) {
        log.fatal({ chain, err: error }, "wrong chain");
        options.onFatal?.(error);
      }
    });
    signal.addEventListener("abort", () => first.reject(new Error(`chain "${chain}": closed`)), { once: true });
    await Promise.race([first.promise, failed]).finally(stop);
  };

  const ready = start();
  // Whoever awaits it hears of a failure; whoever does not must not end by it.
  ready.catch(() => undefined);

  const source = routed(nodes, {
    attempts: options.attempts ?? DEFAULT_ATTEMPTS,
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
      return { chainId: known?.chainId ?? 0n, hash: known?.hash ?? ZERO_HASH };
    },
    ready,
    request: (question, context) => {
      heads.touch();
      return source.request(question, context);
    },
    close: async () => {
      ending.abort();
      await Promise.all(nodes.map((node) => node.close()));
      if (options.verifyPool === undefined) await pool.close();
    },
  };
};
