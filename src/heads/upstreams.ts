import type { Context } from "../core/context.ts";
import { LoopClock } from "../core/loopClock.ts";
import { type Check, UnverifiedError } from "../core/node.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import type { NodeSource, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { chainForks } from "../ethereum/chainForks.ts";
import type { Hash } from "../ethereum/hex.ts";
import { hasLagoon } from "../ethereum/rules.ts";
import type { HedgeOptions } from "../nodes/hedge.ts";
import { type Capabilities, followCapabilities } from "../nodes/nodeCapabilities.ts";
import { type NodeConfig, nodeName, type TransportOptions } from "../nodes/nodeConfig.ts";
import { NodePool } from "../nodes/nodePool.ts";
import { type NodeOptions, UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { Evidence } from "../verification/evidence.ts";
import { Verifier } from "../verification/verifier.ts";
import type { VerifyThreads } from "../verification/verifyThreads.ts";
import type { Finality } from "./canonicalChain.ts";
import { ChainIdentity } from "./chainIdentity.ts";
import type { Agree } from "./decideHead.ts";
import { HeadTracker, type HeadTrackerOptions } from "./headTracker.ts";

export interface UpstreamsOptions extends TransportOptions {
  readonly chainId?: number | undefined;
  readonly nodes: readonly (Omit<NodeConfig, "name"> & { readonly name?: string | undefined })[];
  readonly attempts?: number;
  readonly hedge?: HedgeOptions | undefined;
  readonly finality?: Finality;
  /** The number of origins that must have a block before it is served; default: `auto`. */
  readonly agree?: Agree;
  readonly blockTimeMs?: number | undefined;
  /** The chain has a feed. Default: it has none. */
  readonly hasFeed?: boolean;
  /** Called if a node is suspended because it serves another chain. */
  readonly onWrongChain?: ((error: Error) => void) | undefined;
  /** Checks that always fail on this chain. */
  readonly checksOff?: readonly Check[];
  /** Blocks that an earlier chain served: see HeadTracker. */
  readonly known?: HeadTrackerOptions["known"];
  /** Threads that verify. Without them, nothing may be verified. */
  readonly verifyPool?: Pick<VerifyThreads, "check"> | undefined;
}

const NO_THREADS: Pick<VerifyThreads, "check"> = {
  check: () => Promise.reject(new Error("there are no threads that verify responses")),
};

const byPriority = (nodes: readonly UpstreamNode[]): readonly UpstreamNode[] =>
  [...nodes].sort((one, other) => one.priority - other.priority);

/** Follows the nodes until the signal is aborted. */
const followNodes = (
  options: UpstreamsOptions,
  nodes: readonly UpstreamNode[],
  telemetry: Telemetry,
  signal: AbortSignal,
) => {
  const { chain, chainId, onWrongChain, finality = {}, agree, blockTimeMs, hasFeed = false, clock, known } = options;
  const identity = new ChainIdentity({
    chain,
    chainId: chainId === undefined ? undefined : BigInt(chainId),
    nodes,
    telemetry,
    signal,
    clock,
    onWrongChain,
    onIdentified: (node) => {
      const { wsUrl, headers = {} } = node.config;
      heads.follow(node, wsUrl === undefined ? undefined : { url: wsUrl, headers });
    },
  });
  const heads = new HeadTracker(
    {
      chain,
      finality,
      hasFeed,
      identity,
      known,
      nodes: byPriority(nodes),
      ...{ agree, blockTimeMs, clock },
    },
    telemetry,
    signal,
  );
  const ready = waitForHead(chain, heads, signal);
  identity.start();
  return { heads, ready, identity };
};

const waitForHead = (chain: string, heads: HeadTracker, signal: AbortSignal): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // A rejection without a listener would end the process.
  promise.catch(() => undefined);
  promise.finally(heads.subscribe(() => resolve())).catch(() => undefined);
  signal.addEventListener("abort", () => reject(new Error(`chain "${chain}": closed`)), { once: true });
  return promise;
};

/** The nodes of one chain, which are followed from the start. */
export class Upstreams implements NodeSource {
  readonly nodes: readonly UpstreamNode[];
  readonly heads: HeadTracker;
  readonly verifier: Verifier;
  /** For requests of forebay itself. They do not mark the chain active, so that an idle chain stays idle. */
  get background(): NodeSource {
    return this.#pool;
  }

  /** Resolves when chain id, genesis and a first head are known. Rejects only if it is closed before. */
  readonly ready: Promise<void>;
  readonly #options: UpstreamsOptions;
  readonly #pool: NodePool;
  readonly #telemetry: Telemetry;
  readonly #identity: ChainIdentity;
  readonly #ending = new AbortController();

  constructor(options: UpstreamsOptions, telemetry: Telemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
    const configs = options.nodes.map((node, index) => ({ ...node, name: nodeName(node, index) }));
    this.verifier = this.#createVerifier();
    const { signal } = this.#ending;
    const followed = { ...options, clock: options.clock ?? new LoopClock(signal) };
    const shared: NodeOptions = {
      ...followed,
      verifier: this.verifier,
      peers: () => this.nodes,
      verifyIdentity: (node) => this.#identity.verify(node),
    };
    this.nodes = configs.map((config) => new UpstreamNode(config, shared, telemetry));
    const { heads, ready, identity } = followNodes(followed, this.nodes, telemetry, signal);
    this.heads = heads;
    this.ready = ready;
    this.#identity = identity;
    this.#pool = this.#createPool();
    // With one node, there is nothing to select.
    if (this.nodes.length > 1) {
      this.ready.then(() => followCapabilities(this.nodes, signal)).catch(() => undefined);
    }
  }

  /** What the usable nodes state of their data. Empty if none says it. */
  capabilities(): readonly Capabilities[] {
    return this.nodes.flatMap(({ available, health: { capabilities } }) =>
      available && capabilities ? [capabilities] : [],
    );
  }

  /** Known when `ready` has resolved. `hash` changes only if the chain is reset. */
  get genesis(): { readonly chainId: bigint; readonly hash: Hash } {
    return { chainId: this.#identity.chainId ?? 0n, hash: this.#identity.genesis };
  }

  /** The result of net_version. Undefined until a node returned it. */
  get networkId(): string | undefined {
    return this.#identity.networkId;
  }

  request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    this.heads.markActive();
    return this.#pool.request(request, context);
  }

  async close(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.nodes.map((node) => node.close()));
  }

  #createVerifier(): Verifier {
    const { chain, verify = "off", checksOff = [], verifyPool = NO_THREADS } = this.#options;
    const onWrongAnswer = (name: string, check: Check): void =>
      this.nodes.find((node) => node.name === name)?.recordWrongAnswer(new UnverifiedError(name, check, true));
    const evidence = new Evidence({ chain, nodes: () => this.nodes, off: checksOff, onWrongAnswer }, this.#telemetry);
    const hasLagoonTime = (): boolean => {
      const forks = chainForks(this.genesis.chainId);
      return forks !== undefined && hasLagoon(forks);
    };
    return new Verifier(verify, evidence, verifyPool, hasLagoonTime);
  }

  #createPool(): NodePool {
    const { chain, attempts = RETRY_LIMITS.pool.defaultAttempts, hedge } = this.#options;
    return new NodePool(chain, this.nodes, { attempts, hedge }, this.#telemetry);
  }
}
