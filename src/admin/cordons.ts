import type { CordonOutcome } from "./opsServer.ts";

interface CordonedNode {
  readonly name: string;
  readonly available: boolean;
  readonly state: { readonly isCordoned: boolean; cordon(isCordoned: boolean): void };
}

/** The chains of now, with the nodes that an operator may cordon. */
type CordonedChains = () => readonly {
  readonly name: string;
  readonly upstreams: { readonly nodes: readonly CordonedNode[] };
}[];

/** Cordons nodes for an operator. The last available node of a chain is cordoned only by force. */
export class Cordons {
  readonly #chains: CordonedChains;

  constructor(chains: CordonedChains) {
    this.#chains = chains;
  }

  cordon(chain: string, name: string, isForced: boolean): CordonOutcome {
    const nodes = this.#nodesOf(chain);
    const node = nodes.find((each) => each.name === name);
    const isLast = node?.available === true && !nodes.some((other) => other !== node && other.available);
    return isLast && !isForced ? "last" : set(node, true);
  }

  uncordon(chain: string, name: string): CordonOutcome {
    return set(
      this.#nodesOf(chain).find((each) => each.name === name),
      false,
    );
  }

  /** Uncordons all nodes, and returns those that were cordoned. */
  clear(): readonly { readonly chain: string; readonly node: string }[] {
    return this.#chains().flatMap(({ name: chain, upstreams: { nodes } }) =>
      nodes.flatMap(({ name: node, state }) => {
        if (!state.isCordoned) {
          return [];
        }
        state.cordon(false);
        return [{ chain, node }];
      }),
    );
  }

  #nodesOf(chain: string): readonly CordonedNode[] {
    return this.#chains().find(({ name }) => name === chain)?.upstreams.nodes ?? [];
  }
}

const set = (node: CordonedNode | undefined, isCordoned: boolean): CordonOutcome => {
  node?.state.cordon(isCordoned);
  return node === undefined ? "unknown" : "done";
};
