import assert from "node:assert/strict";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import type { EthereumFork } from "../../src/ethereum/rules.ts";
import type { SimulationInput } from "../../src/simulation/runSimulation.ts";
import { simulateOne } from "./plainSimulation.ts";

export const SENDER: Address = `0x${"aa".repeat(20)}`;

export const CODE: Address = `0x${"cc".repeat(20)}`;

export const LOGGER: Address = `0x${"dd".repeat(20)}`;

export const GAS = "0x100000";

export const hex = (value: bigint): string => `0x${value.toString(16)}`;

export const word = (value: bigint | number): Hash => `0x${value.toString(16).padStart(64, "0")}`;

export const forkOf = (fork: EthereumFork): Partial<SimulationInput> => ({ forks: fixedForks(1n, fork) });

/** Simulates one call, and returns its result. */
export const simulateCall = async (
  call: object,
  states: object = {},
  options: Partial<SimulationInput> = {},
  rest: object = {},
) => {
  const block = await simulateOne({ stateOverrides: states, calls: [{ gas: GAS, ...call }] }, rest, options);
  const [result] = block.calls;
  assert.ok(result);
  return result;
};

export const haltOf = async (call: object, states: object = {}, options: Partial<SimulationInput> = {}) => {
  const { status, error } = await simulateCall(call, states, options);
  assert.deepEqual([status, error?.code], ["0x0", -32015]);
  return error?.message;
};

export const runCode = (code: string, options: Partial<SimulationInput> = {}) =>
  haltOf({ to: CODE }, { [CODE]: { code: `0x${code}` } }, options);

export const bytes = (length: number, fill = "00"): string => fill.repeat(length);
