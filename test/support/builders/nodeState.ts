import type { StateFetch } from "../../../src/core/stateReader.ts";
import { NodeState, type NodeStateOptions } from "../../../src/state/fetch/nodeState.ts";
import { type FetchedValues, StateFetcher } from "../../../src/state/fetch/stateFetcher.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";

interface CreateNodeStateOptions extends Omit<NodeStateOptions, "fetcher" | "store"> {
  readonly fetch: StateFetch;
  readonly maxBytes: number;
}

/** Creates the state of blocks, with a store of its own. Each slot is read by a call of its own. */
export const createNodeState = ({ fetch, maxBytes, ...others }: CreateNodeStateOptions): NodeState => {
  const store = new ValueStore(0, maxBytes);
  const fetcher = new StateFetcher(fetch, (method) => (method === "eth_call" ? Number.POSITIVE_INFINITY : 1));
  return new NodeState({ ...others, fetcher, store: () => store });
};

/** Creates what a fetch returns. */
export const fetchedValues = (part: Partial<FetchedValues> = {}): FetchedValues => ({
  values: new Map(),
  errors: new Map(),
  codes: new Map(),
  outcomes: [],
  node: undefined,
  isConfirmed: undefined,
  units: 0,
  ...part,
});
