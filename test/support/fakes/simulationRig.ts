import type { RpcResponse } from "../../../src/core/rpcSource.ts";
import type { StateFetch } from "../../../src/core/stateFetch.ts";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import { prefetchHintOfCall, prefetchHintOfPayload } from "../../../src/simulation/payload.ts";
import type { BaseBlock } from "../../../src/simulation/simulatedHeader.ts";
import { createSimulator } from "../../../src/simulation/simulator.ts";
import { createNodeState } from "../builders/nodeState.ts";
import { createContext } from "../builders/request.ts";
import { createWorkers } from "../servers/evmWorkers.ts";

export interface SimulationRig {
  /** Returns the JSON value of the result. */
  simulate(params: readonly unknown[], on?: BaseBlock): Promise<unknown>;
  call(params: readonly unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

/** The limits of simulations in tests. */
export const SIMULATOR_OPTIONS = {
  profile: "contract",
  errorShape: "object",
  maxBlocks: 256,
  maxCalls: 5_000,
  gasCap: 50_000_000n,
  maxResponseBytes: 16 * 1024 * 1024,
  timeoutMs: 5_000,
  blockTimeMs: () => 2_000,
} as const;

const MAX_BYTES = 16 * 1024 * 1024;

/** Creates a simulator on a block of a development chain, with one worker and no cached state. */
export const createSimulationRig = (block: BaseBlock, fetch: StateFetch): SimulationRig => {
  const nodeState = createNodeState({ fetch, maxBytes: MAX_BYTES });
  const workers = createWorkers();
  const simulator = createSimulator({
    ...SIMULATOR_OPTIONS,
    workers,
    forks: () => fixedForks(31_337n, "prague"),
    nativesAt: () => [],
  });
  const caller = createContext();
  const encode = (params: readonly unknown[]) => new TextEncoder().encode(JSON.stringify(params));
  const decode = ({ body }: RpcResponse): unknown => {
    if (!(body instanceof Uint8Array)) {
      throw new Error("a simulation answers in one piece");
    }
    return JSON.parse(new TextDecoder().decode(body));
  };
  return {
    simulate: async (params, on = block) => {
      const source = nodeState.at(on, prefetchHintOfPayload(params));
      return decode(await simulator.simulate(encode(params), { block: on, source }, caller));
    },
    call: async (params) => {
      const source = nodeState.at(block, prefetchHintOfCall(params));
      return decode(await simulator.call(encode(params), { block, source }, caller));
    },
    close: () => workers.close(),
  };
};
