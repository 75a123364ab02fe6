import { fixedForks } from "../../src/chain/ethereumForks.ts";
import { createNodeState, type StateFetch } from "../../src/evm/nodeState.ts";
import { createWorkers } from "../../src/evm/workers.ts";
import type { ParentBlock } from "../../src/simulate/simulatedHeader.ts";
import { createSimulator, SIMULATE_WORKER, wishOfPayload } from "../../src/simulate/simulator.ts";

export interface SimulationRig {
  /** The answer's JSON value. */
  simulate(params: readonly unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

const MAX_BYTES = 16 * 1024 * 1024;

/** A simulator on a development chain's block, with one worker and nothing known. */
export const createSimulationRig = (block: ParentBlock, fetch: StateFetch): SimulationRig => {
  const nodeState = createNodeState({ fetch, maxBytes: MAX_BYTES });
  const workers = createWorkers({ entry: SIMULATE_WORKER, size: 1, natives: [] });
  const simulator = createSimulator({
    workers,
    forks: fixedForks(31_337n, "prague"),
    profile: "contract",
    errorShape: "object",
    maxBlocks: 256,
    maxCalls: 5_000,
    gasCap: 50_000_000n,
    timeoutMs: 5_000,
    blockTimeMs: () => 2_000,
  });
  const { signal } = new AbortController();
  return {
    simulate: async (params) => {
      const source = nodeState.at(block, wishOfPayload(params));
      const paramsText = new TextEncoder().encode(JSON.stringify(params));
      const { body } = await simulator.simulate(paramsText, { block, source }, signal);
      if (!(body instanceof Uint8Array)) throw new Error("a simulation answers in one piece");
      return JSON.parse(new TextDecoder().decode(body));
    },
    close: () => workers.close(),
  };
};
