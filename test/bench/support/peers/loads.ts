import type { Child } from "../child.ts";
import { type LoadShape, type Measured, measure, type Server } from "../compareServers.ts";

/** A column of the table: the load, and how many calls it sends. */
export interface PeerLoad {
  readonly name: string;
  readonly isHit: boolean;
  readonly shape: Pick<LoadShape, "body" | "connections">;
}

const call = (id: number, method: string, params: readonly unknown[]) => ({ jsonrpc: "2.0", id, method, params });
const newCall = (id: number) =>
  call(id, "eth_call", [{ to: `0x${id.toString(16).padStart(40, "1")}`, data: "0x{n}" }, "latest"]);
const batch = (length: number, item: (id: number) => object): string =>
  JSON.stringify(Array.from({ length }, (_, index) => item(index + 1)));

const SMALL_BLOCK = "0x8";
const LARGE_BLOCK = "0x10";

const hashOf = async (nodePort: number, number: string): Promise<string> => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBlockByNumber", params: [number, false] });
  const response = await fetch(`http://127.0.0.1:${nodePort}`, { method: "POST", body });
  const { result } = (await response.json()) as { result: { hash: string } };
  return result.hash;
};

/** A method that is never cached and never coalesced. */
export const FORWARDED: PeerLoad = {
  ...{ name: "forwarded", isHit: false },
  shape: { body: JSON.stringify(call(1, "net_peerCount", [])), connections: 64 },
};

/** The loads in front of `verifiedNode.ts`. All peers cache a block by its hash. */
export const peerLoads = async (nodePort: number): Promise<readonly PeerLoad[]> => {
  const [smallHash, largeHash] = [await hashOf(nodePort, SMALL_BLOCK), await hashOf(nodePort, LARGE_BLOCK)];
  const small = (id: number) => call(id, "eth_getBlockByHash", [smallHash, false]);
  const large = JSON.stringify(call(1, "eth_getBlockByHash", [largeHash, true]));
  const hit = (name: string, body: string, connections: number) => ({
    ...{ name, isHit: true },
    shape: { body, connections },
  });
  const miss = (name: string, body: string, connections: number) => ({
    ...{ name, isHit: false },
    shape: { body, connections },
  });
  return [
    hit("hit 1.8 kB", JSON.stringify(small(1)), 32),
    hit("hit 106 kB", large, 32),
    hit("batch of 100 hits", batch(100, small), 8),
    miss("eth_call", JSON.stringify(newCall(1)), 64),
    miss("batch of 20 eth_call", batch(20, newCall), 8),
  ];
};

const countRequests = async (node: Child): Promise<number> => {
  node.send("count");
  return Number(await node.message());
};

/** A hit sends the node less than this share of the requests. */
const MAX_HIT_REQUESTS = 0.05;

/** Measures a load. Hits that reach the node are no hits: then the result is undefined. */
export const measureLoad = async (
  server: Server,
  { isHit, shape }: PeerLoad,
  node: Child,
  times: Pick<LoadShape, "warmMs" | "measureMs">,
): Promise<Measured | undefined> => {
  const before = await countRequests(node);
  const measured = await measure(server, { ...shape, ...times });
  const requests = (await countRequests(node)) - before;
  const answered = measured.requestsPerSecond * ((times.warmMs + times.measureMs) / 1_000);
  return isHit && requests > answered * MAX_HIT_REQUESTS ? undefined : measured;
};
