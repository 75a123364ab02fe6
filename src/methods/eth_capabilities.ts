import type { Heads } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { formatJson } from "../json/jsonBytes.ts";
import { type Capabilities, DATA_RESOURCES, type DataResource, oldestStated } from "../nodes/nodeCapabilities.ts";
import type { Method } from "./method.ts";
import { parseParams } from "./paramSpec.ts";
import { plainRead } from "./plainRead.ts";

const name = "eth_capabilities";

const ofNode = plainRead({ name, params: [], retention: "head" });

/** The data of the node that has the oldest block. */
const formatResource = (nodes: readonly Capabilities[], resource: DataResource, head: bigint) => {
  const stated = nodes.flatMap((node) => {
    const data = node[resource];
    return data === undefined || data.isDisabled ? [] : [{ data, oldest: oldestStated(data, head) }];
  });
  const best = stated.reduce<(typeof stated)[number] | undefined>(
    (oldest, each) => (oldest === undefined || each.oldest < oldest.oldest ? each : oldest),
    undefined,
  );
  if (best === undefined) {
    return { disabled: true };
  }
  const { windowBlocks } = best.data;
  const deleteStrategy =
    windowBlocks === undefined ? { type: "none" } : { type: "window", retentionBlocks: Number(windowBlocks) };
  return { disabled: false, oldestBlock: formatQuantity(best.oldest), deleteStrategy };
};

const unionOf = (nodes: readonly Capabilities[], { latest: { number, hash } }: Heads): RpcResponse => {
  const resources = DATA_RESOURCES.map((resource) => [resource, formatResource(nodes, resource, number)] as const);
  const head = { number: formatQuantity(number), hash };
  return { body: formatJson({ head, ...Object.fromEntries(resources) }), status: { hit: "local" } };
};

/** Returns what data the usable nodes have together. A single node answers itself, and so do nodes of which none is known. */
export const eth_capabilities: Method = {
  ...ofNode,
  handle: (input) => {
    parseParams(input.call.params, []);
    const nodes = input.chain.capabilities();
    return nodes.length === 0 ? ofNode.handle(input) : unionOf(nodes, input.context.view.heads);
  },
};
