import { type Clock, systemClock } from "../core/clock.ts";
import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Hash, isHash, isQuantity, ZERO_HASH } from "../ethereum/hex.ts";
import { asText } from "../json/jsonBytes.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { headScope } from "../nodes/blockReads.ts";
import type { IdentityFault, IdentityResult } from "../nodes/identityGate.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

export interface NodeIdentity {
  readonly chainId: bigint;
  /** Zero if the node does not have its genesis block. */
  readonly genesis: Hash;
  /** The result of net_version, if it was asked. It differs from the chain id on a few chains. */
  readonly networkId?: string | undefined;
}

/** A node serves another chain than the other nodes, or than the configured one. */
export class ChainMismatchError extends Error {
  override readonly name = "ChainMismatchError";
}

/** A node returned its chain id, but its genesis block cannot be read. */
class GenesisMissingError extends Error {
  override readonly name = "GenesisMissingError";
}

/** The calls whose outcomes `parseIdentity` takes, in this order. */
const IDENTITY_CALLS: readonly Call[] = [
  createCall("eth_chainId", []),
  createCall("eth_getBlockByNumber", ["0x0", false]),
];

const NETWORK_CALL = createCall("net_version", []);

const parse = (outcome: RpcResponse | NodeError | undefined): unknown =>
  outcome === undefined || outcome instanceof NodeError || !(outcome.body instanceof Uint8Array)
    ? undefined
    : JSON.parse(asText(outcome.body));

/** Parses the outcomes of IDENTITY_CALLS. Throws if there is no chain id, or if the genesis block is an error. */
const parseIdentity = ([id, block]: readonly (RpcResponse | NodeError)[]): NodeIdentity => {
  if (id instanceof NodeError) {
    throw id;
  }
  if (block instanceof NodeError) {
    throw new GenesisMissingError(`genesis block cannot be read: ${block.message}`, { cause: block });
  }
  const chainId = parse(id);
  if (!isQuantity(chainId)) {
    throw new Error("eth_chainId returned no quantity");
  }
  const { hash }: { hash?: unknown } = Object(parse(block));
  return { chainId: BigInt(chainId), genesis: isHash(hash) ? hash : ZERO_HASH };
};

/**
 * Reads chain id and genesis in one batch, so that one machine behind a load balancer answers both. `withNetwork`: also the network
 * id.
 */
const readNodeIdentity = async (
  node: UpstreamNode,
  signal: AbortSignal,
  withNetwork: boolean,
): Promise<NodeIdentity> => {
  const calls = withNetwork ? [...IDENTITY_CALLS, NETWORK_CALL] : IDENTITY_CALLS;
  const outcomes = await node.probe(calls, headScope(signal));
  const networkId = parse(outcomes[IDENTITY_CALLS.length]);
  return { ...parseIdentity(outcomes), networkId: typeof networkId === "string" ? networkId : undefined };
};

/** Classifies an error that was thrown when a node's identity was read or checked. */
const identityFault = (error: unknown): IdentityFault => {
  const text = error instanceof Error ? error.message : "no response";
  if (error instanceof GenesisMissingError) {
    return { kind: "noGenesis", text };
  }
  return { kind: error instanceof ChainMismatchError ? "wrongChain" : "noAnswer", text };
};

export interface ChainIdentityOptions {
  readonly chain: string;
  /** The configured chain id. Without one, the first response of a node decides until the restart. */
  readonly chainId: bigint | undefined;
  readonly nodes: readonly UpstreamNode[];
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly signal: AbortSignal;
  readonly clock?: Clock | undefined;
  /** Called once for each node, when it was first found to be of this chain. */
  readonly onIdentified: (node: UpstreamNode) => void;
  /** Called whenever a node is suspended. */
  readonly onWrongChain?: ((error: ChainMismatchError) => void) | undefined;
}

/** A node whose heads do not link is checked at this interval: it may be of another chain. */
const RECHECK_MS = 5_000;
/** The checks that are due are made at this interval. */
const STEP_MS = 1_000;

/** The chain id and genesis of one chain. Suspends nodes that have others. */
export class ChainIdentity {
  readonly #options: ChainIdentityOptions;
  #chainId: bigint | undefined;
  /** The node that returned the chain id first; undefined if it is configured. */
  #source: string | undefined;
  #genesis: Hash = ZERO_HASH;
  #networkId: string | undefined;

  constructor(options: ChainIdentityOptions) {
    this.#options = options;
    this.#chainId = options.chainId;
  }

  /** Undefined until it is configured or a node returned one. */
  get chainId(): bigint | undefined {
    return this.#chainId;
  }

  /** Zero until a node returned it. */
  get genesis(): Hash {
    return this.#genesis;
  }

  /** The network id of the first node that returned one. Undefined until then. */
  get networkId(): string | undefined {
    return this.#networkId;
  }

  /** Checks every node now and then periodically, until the signal is aborted. */
  start(): void {
    for (const node of this.#options.nodes) {
      void this.#watch(node);
    }
  }

  /** Reads a node's identity, and suspends the node or ends its suspension. Never rejects. */
  async verify(node: UpstreamNode): Promise<IdentityResult> {
    node.identity.begin();
    try {
      return await this.#apply(node, await this.#readIdentity(node));
    } catch (error) {
      node.identity.miss(identityFault(error));
      return { kind: "unknown" };
    }
  }

  /** Verifies a node whose heads do not link, unless that was done lately. */
  async recheck(node: UpstreamNode): Promise<void> {
    if (node.identity.isDue(RECHECK_MS)) {
      await this.verify(node);
    }
  }

  /** Suspends the node if `identity` is another chain's, and ends its suspension if it is not. */
  async #apply(node: UpstreamNode, identity: NodeIdentity): Promise<IdentityResult> {
    this.#chainId ??= this.#setSource(node, identity.chainId);
    if (identity.chainId !== this.#chainId) {
      return this.#suspend(node, identity);
    }
    this.#networkId ??= identity.networkId;
    if (this.#genesis === ZERO_HASH) {
      this.#genesis = identity.genesis;
    }
    if (identity.genesis === ZERO_HASH || identity.genesis === this.#genesis) {
      this.#accept(node);
      return { kind: "same" };
    }
    if (await this.#hasGenesisElsewhere(node)) {
      return this.#suspend(node, identity);
    }
    this.#accept(node);
    return { kind: "reset", genesis: identity.genesis };
  }

  /** Records a chain reset: the chain has another genesis block now. */
  reset(genesis: Hash): void {
    if (genesis === this.#genesis) {
      return;
    }
    this.#genesis = genesis;
    const { chain, telemetry } = this.#options;
    telemetry.log.warn({ chain, genesis }, "the chain was reset: it has another genesis block");
  }

  #readIdentity(node: UpstreamNode): Promise<NodeIdentity> {
    return readNodeIdentity(node, this.#options.signal, this.#networkId === undefined);
  }

  #setSource(node: UpstreamNode, chainId: bigint): bigint {
    this.#source = node.name;
    return chainId;
  }

  /** Whether another node still has the known genesis block. */
  async #hasGenesisElsewhere(node: UpstreamNode): Promise<boolean> {
    const { nodes } = this.#options;
    const others = nodes.filter((other) => other !== node && other.identity.isIdentified);
    const results = await Promise.all(
      others.map(async (other) => {
        try {
          const { chainId, genesis } = await this.#readIdentity(other);
          return chainId === this.#chainId && genesis === this.#genesis;
        } catch {
          return false;
        }
      }),
    );
    return results.includes(true);
  }

  #mismatch(node: UpstreamNode, { chainId, genesis }: NodeIdentity): ChainMismatchError {
    const { chain } = this.#options;
    if (chainId === this.#chainId) {
      return new ChainMismatchError(
        `chain "${chain}": the genesis block is ${this.#genesis}, but node "${node.name}" has ${genesis} (chain id ${chainId})`,
      );
    }
    const before = this.#source === undefined ? "is configured with" : `node "${this.#source}" has`;
    return new ChainMismatchError(
      `chain "${chain}": ${before} chain id ${this.#chainId}, but node "${node.name}" has chain id ${chainId}`,
    );
  }

  #suspend(node: UpstreamNode, identity: NodeIdentity): IdentityResult {
    const error = this.#mismatch(node, identity);
    const facts = { chainId: `${identity.chainId}`, expectedChainId: `${this.#chainId}` };
    if (node.identity.suspend(identityFault(error), facts)) {
      this.#options.onWrongChain?.(error);
    }
    return { kind: "other" };
  }

  #accept(node: UpstreamNode): void {
    if (node.identity.accept()) {
      this.#options.onIdentified(node);
    }
  }

  async #watch(node: UpstreamNode): Promise<void> {
    const { signal, clock = systemClock } = this.#options;
    while (!signal.aborted) {
      if (node.identity.isDue()) {
        await this.verify(node);
      }
      await clock.sleep(STEP_MS, signal);
    }
  }
}
