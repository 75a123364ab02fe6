import { createBatchFetch } from "../nodes/fetchStateBatch.ts";
import { rankNodes } from "../nodes/nodeSelection.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { StateFetcher } from "../state/fetch/stateFetcher.ts";
import { type ComparedNode, OriginComparison } from "../state/originComparison.ts";
import type { StateCost } from "../state/stateCost.ts";
import type { Upstreams } from "./upstreams.ts";

export interface OriginComparisonParts {
  readonly upstreams: Pick<Upstreams, "nodes" | "heads">;
  readonly timeoutMs: number;
  readonly cost: Pick<StateCost, "spend" | "unitsOf">;
}

/** Creates the comparison of values between the nodes of a chain. Each node has its own reader, so that each value has one giver. */
export const createOriginComparison = (parts: OriginComparisonParts): OriginComparison => {
  const { upstreams, timeoutMs, cost } = parts;
  const { heads } = upstreams;
  const { unitsOf } = cost;
  const compared = new Map<UpstreamNode, ComparedNode>(
    upstreams.nodes.map((node) => [
      node,
      {
        name: node.name,
        origin: node.origin,
        get available() {
          return node.available;
        },
        reader: new StateFetcher(createBatchFetch({ nodes: [node], heads }, timeoutMs), unitsOf),
      },
    ]),
  );
  return new OriginComparison({
    nodes: () => {
      const current = heads.current();
      const ranked = current === undefined ? [] : rankNodes(upstreams.nodes, current.latest, current);
      return ranked.flatMap((node) => compared.get(node) ?? []);
    },
    onSpent: (units) => cost.spend("audit", units),
  });
};
