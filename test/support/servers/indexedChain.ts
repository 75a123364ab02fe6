import { formatQuantity } from "../../../src/ethereum/hex.ts";
import { TruthChain } from "../../world/chain/truthChain.ts";
import { startWorldNode } from "../../world/nodes/worldNode.ts";
import { rpc } from "../clients/rpc.ts";
import { callsOf, forwardTo, type NodeCall, startFront } from "../fakes/front.ts";
import type { Lifespan } from "./redis.ts";

/** A chain with a node that counts its calls. */
export interface IndexedChain {
  readonly chain: TruthChain;
  /** Behind it, the calls are counted. */
  readonly url: string;
  /** Calls by method. Reads of a tag are counted for themselves, such as `eth_getBlockByNumber latest`. */
  readonly calls: Map<string, number>;
}

const TAG = /^[a-z]+$/;

const nameOf = ({ method, params: [first] }: NodeCall): string =>
  typeof first === "string" && TAG.test(first) ? `${method} ${first}` : method;

/** Creates a chain with at least 150 blocks, each with one transaction and one log. */
export const startIndexedChain = async (t: Lifespan, blocks: number): Promise<IndexedChain> => {
  const chain = await TruthChain.create(1, 1);
  t.after(() => chain.lagBound.close());
  while (chain.head.number < blocks) {
    await chain.mine(1);
  }
  const node = await startWorldNode(t, chain);
  const calls = new Map<string, number>();
  const front = await startFront((body) => {
    for (const call of callsOf(body)) {
      calls.set(nameOf(call), (calls.get(nameOf(call)) ?? 0) + 1);
    }
    return forwardTo(node.url, body);
  });
  t.after(() => front.close());
  return { chain, url: front.url, calls };
};

/** Reads what an indexer reads of a block: the block in full by its number, then its logs by its hash. */
export const indexBlock = async (url: string, number: number, filter: object = {}): Promise<readonly unknown[]> => {
  const { body: block } = await rpc(url, "eth_getBlockByNumber", [formatQuantity(number), true]);
  const { hash } = Object(block.result);
  const { body: logs } = await rpc(url, "eth_getLogs", [{ ...filter, blockHash: hash }]);
  if (block.error !== undefined || !Array.isArray(logs.result)) {
    throw new Error(`block ${number}: ${JSON.stringify(block.error ?? logs)}`);
  }
  return logs.result;
};
