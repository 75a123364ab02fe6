import type { BlockId } from "../../../src/core/heads.ts";
import type { StateFetch } from "../../../src/core/stateFetch.ts";
import { type BlockState, BlockStates, type BlockStatesOptions, type StateUse } from "../../../src/state/blockState.ts";
import type { CallRunnerOptions } from "../../../src/state/calls/callRunner.ts";
import type { PrefetchHint } from "../../../src/state/fetch/prefetch.ts";
import { type FetchedValues, StateFetcher } from "../../../src/state/fetch/stateFetcher.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";

interface CreateNodeStateOptions extends Partial<Omit<BlockStatesOptions, "fetcher">> {
  readonly fetch: StateFetch;
  readonly maxBytes: number;
}

export interface NodeState {
  at(block: BlockId, hint?: PrefetchHint, use?: Partial<StateUse>): BlockState;
}

/** Creates the state of blocks, by default from nodes and with a store of its own. Each slot is read by a call of its own. */
export const createNodeState = ({ fetch, maxBytes, ...others }: CreateNodeStateOptions): NodeState => {
  const states = new BlockStates({
    ...{ chain: "chain", heads: { current: () => undefined }, known: { store: new ValueStore(0, maxBytes) } },
    telemetry: createTelemetry({ level: "silent" }),
    fetcher: new StateFetcher(fetch, (method) => (method === "eth_call" ? Number.POSITIVE_INFINITY : 1)),
    ...others,
  });
  return { at: (block, hint, use) => states.at(block, { from: "nodes", hint, ...use }) };
};

/** Returns the state after blocks from the known values of a store alone. */
export const knownStateOf =
  (store: ValueStore): CallRunnerOptions["stateAt"] =>
  (block, expected) =>
    createNodeState({ fetch: () => Promise.reject(new Error("no node is asked")), maxBytes: 0, known: { store } }).at(
      block,
      undefined,
      { from: "known", expected },
    );

/** Creates what a fetch returns. */
export const fetchedValues = (part: Partial<FetchedValues> = {}): FetchedValues => ({
  values: new Map(),
  errors: new Map(),
  codes: new Map(),
  outcomes: [],
  node: undefined,
  isAgreed: undefined,
  units: 0,
  ...part,
});
