import type { BlockId } from "../../../src/core/heads.ts";
import { NodeError } from "../../../src/core/node.ts";
import type { UpstreamNode } from "../../../src/nodes/upstreamNode.ts";
import type { FakeBlock, FakeChain } from "../fakes/fakeChain.ts";

export interface ChainNode extends UpstreamNode {
  /** Number of calls; each item of a batch counts. */
  calls: number;
  /** The chain that it answers from; can be replaced. */
  chain: FakeChain;
  /** Blocks behind the chain's end. */
  lag: number;
  /** Blocks of the finalized block below the newest. */
  finalizedDepth: number;
  height: number | undefined;
  down: boolean;
  available: boolean;
}

const encoder = new TextEncoder();

/** Creates a node without a network, for tests with a fake clock. It answers eth_getBlockByNumber from a fake chain at once. */
export const createChainNode = (name: string, chain: FakeChain, origin = name): ChainNode => {
  let head: BlockId | undefined;
  const top = (): number => Math.max(0, node.height ?? node.chain.blocks.length - 1 - node.lag);
  const block = (tag: unknown): FakeBlock | undefined => {
    const depths: Record<string, number> = { latest: 0, safe: 4, finalized: node.finalizedDepth };
    const depth = depths[String(tag)];
    const number = depth === undefined ? Number(tag) : Math.max(0, top() - depth);
    return number <= top() ? node.chain.blocks[number] : undefined;
  };

  const node: ChainNode = {
    name,
    host: `${name}.test:8545`,
    origin,
    chain,
    calls: 0,
    lag: 0,
    finalizedDepth: 8,
    height: undefined,
    down: false,
    available: true,
    usable: true,
    identified: true,
    fault: undefined,
    suspended: false,
    reachable: true,
    recordWrongAnswer: () => undefined,
    recordLostRace: () => undefined,
    requestsPerSecond: undefined,
    oldest: 0n,
    priority: 0,
    isFull: false,
    needsTrial: false,
    isCordoned: false,
    setCordoned: () => undefined,
    isFailing: false,
    recordLag: () => undefined,
    unusedReason: undefined,
    accepts: () => true,
    serves: () => true,
    isRejecting: false,
    isUnchecked: false,
    recordDifference: () => undefined,
    latencyMs: 1,
    errorShare: 0,
    inFlight: 0,
    get head() {
      return head?.number;
    },
    get announced() {
      return head?.number;
    },
    get headHash() {
      return head?.hash;
    },
    hashAt: (number) => (head?.number === number ? head.hash : undefined),
    announce: ({ number, hash }) => {
      head = { number, hash };
    },
    recordPruned: () => undefined,
    send: async ({ method, params: [tag] }) => {
      node.calls += 1;
      if (node.down) {
        throw new NodeError("unreachable", name, "down");
      }
      if (method === "eth_chainId") {
        return encoder.encode(JSON.stringify(`0x${node.chain.chainId.toString(16)}`));
      }
      const found = method === "eth_getBlockByHash" ? node.chain.byHash(tag) : block(tag);
      return encoder.encode(JSON.stringify(found?.json ?? null));
    },
    probe: (calls, reach) => node.batch(calls, reach),
    requireIdentityCheck: () => undefined,
    confirm: async () => undefined,
    batch: (calls, reach) =>
      Promise.all(
        calls.map((call) =>
          node.send(call, reach).then(
            (body) => ({ body, status: {} }),
            (error: NodeError) => error,
          ),
        ),
      ),
    request: async (rpcRequest, context) => ({ body: await node.send(rpcRequest, context), status: {} }),
    close: async () => undefined,
  };
  return node;
};
