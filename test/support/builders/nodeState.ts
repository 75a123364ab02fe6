import type { StateFetch } from "../../../src/core/stateFetch.ts";
import { type FetchedValues, StateFetcher } from "../../../src/state/fetch/stateFetcher.ts";
import { StateOfNodes, type StateOfNodesOptions } from "../../../src/state/fetch/stateOfNodes.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";

interface CreateNodeStateOptions extends Omit<StateOfNodesOptions, "fetcher" | "store"> {
  readonly fetch: StateFetch;
  readonly maxBytes: number;
}

/** Creates the state of blocks, with a store of its own. Each slot is read by a call of its own. */
export const createNodeState = ({ fetch, maxBytes, ...others }: CreateNodeStateOptions): StateOfNodes => {
  const store = new ValueStore(0, maxBytes);
  const fetcher = new StateFetcher(fetch, (method) => (method === "eth_call" ? Number.POSITIVE_INFINITY : 1));
  return new StateOfNodes({ ...others, fetcher, store: () => store });
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
