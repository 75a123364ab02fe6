import type { UnitsOf } from "../../access/providerUnits.ts";
import type { CurrentHeads } from "../../core/heads.ts";
import { createBatchFetch } from "../../nodes/fetchStateBatch.ts";
import { rankNodes } from "../../nodes/nodeSelection.ts";
import type { UpstreamNode } from "../../nodes/upstreamNode.ts";
import { StateFetcher } from "./stateFetcher.ts";

/** A node that known values are compared with. */
export interface ComparedNode {
  readonly name: string;
  /** The operator of the node. Nodes of one origin are no evidence for each other. */
  readonly origin: string;
  readonly reader: Pick<StateFetcher, "unitsFor" | "read" | "readSingly" | "fetch">;
}

/** Returns the function that lists the nodes that can be asked now, best first. Each has a reader, so that each value is from one node. */
export const createNodeReaders = (
  { nodes, heads }: { readonly nodes: readonly UpstreamNode[]; readonly heads: CurrentHeads },
  timeoutMs: number,
  unitsOf: UnitsOf,
): (() => readonly ComparedNode[]) => {
  const readers = new Map(
    nodes.map((node) => [node, new StateFetcher(createBatchFetch({ nodes: [node], heads }, timeoutMs), unitsOf)]),
  );
  return () => {
    const current = heads.current();
    const ranked = current === undefined ? [] : rankNodes(nodes, current.latest, current);
    return ranked.flatMap((node) => {
      const { name, origin, available } = node;
      const reader = readers.get(node);
      return reader === undefined || !available ? [] : [{ name, origin, reader }];
    });
  };
};
