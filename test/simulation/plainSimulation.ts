import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import { runSimulation, type SimulationInput } from "../../src/simulation/runSimulation.ts";
import { knownContext } from "../support/builders/completedRun.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { type PlainState, readerOf } from "../support/builders/stateRoot.ts";

const engine = await createEngines();
const EMPTY: PlainState = new Map();

/** The input of a simulation on a chain without accounts. */
const INPUT: Omit<SimulationInput, "paramsText"> = {
  parent: PARENT,
  forks: fixedForks(1n, "prague"),
  profile: "geth",
  errorShape: "object",
  timeStep: 12n,
  maxBlocks: 256,
  maxCalls: 5_000,
  gasCap: 50_000_000n,

  maxResponseBytes: 16 * 1024 * 1024,
};

export interface SimulatedBlock {
  readonly [name: string]: unknown;
  readonly calls: readonly {
    readonly status: string;
    readonly returnData: string;
    readonly logs: readonly {
      readonly address: string;
      readonly topics: readonly string[];
      readonly data: string;
      readonly logIndex: string;
    }[];
    readonly gasUsed: string;
    readonly error?: { readonly message: string; readonly code: number };
  }[];
}

export const simulate = async (
  payload: object,
  options: Partial<SimulationInput> = {},
): Promise<readonly SimulatedBlock[]> => {
  const paramsText = new TextEncoder().encode(JSON.stringify([payload]));
  const reader = readerOf(EMPTY, () => ZERO_HASH);
  const text = await runSimulation({ ...INPUT, ...options, paramsText }, knownContext(engine, reader));
  return JSON.parse(new TextDecoder().decode(text));
};
/** Simulates one block and returns its result. */
export const simulateOne = async (
  blockStateCalls: object,
  rest: object = {},
  options: Partial<SimulationInput> = {},
): Promise<SimulatedBlock> => {
  const [block] = await simulate({ blockStateCalls: [blockStateCalls], ...rest }, options);
  if (block === undefined) {
    throw new Error("no block");
  }
  return block;
};
