import { type Address, type Data, formatData, type Hash } from "../ethereum/hex.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import type { TransactionResult } from "../evm/engine.ts";
import type { SteppedRun, Steps, WorkerContext } from "../evm/reads/complete.ts";
import { type CallExecution, type CallInput, callError, prepareExecution } from "./callExecution.ts";
import { estimateGas } from "./estimateGas.ts";
import { runSimulation } from "./runSimulation.ts";

/** Executes eth_call and returns the call's bytes. Throws RpcError. */
export const runCall = (input: CallInput, context: WorkerContext): Promise<Data> =>
  runOnce(prepareExecution(input, context, { liftsExecutionCap: true }), context);

const runOnce = async (execution: CallExecution, context: WorkerContext): Promise<Data> => {
  const result = await context.complete(wholeRun(execution, execution.gas));
  if (result.status !== "success") {
    throw callError(result);
  }
  return formatData(result.returnData);
};

export interface RepeatedCallResult {
  readonly result: Data;
  /** Half of the gas gives the same bytes, or the call names less gas than the node's cap. */
  readonly holdsWithLessGas: boolean;
}

/** Executes eth_call. If the node chose the gas, it executes the call again with half of it. Throws RpcError. */
const runRepeatedCall = async (input: CallInput, context: WorkerContext): Promise<RepeatedCallResult> => {
  const execution = prepareExecution(input, context, { liftsExecutionCap: true });
  const { call, gas } = execution;
  const result = await runOnce(execution, context);
  if (call.gas !== undefined && call.gas < input.gasCap) {
    return { result, holdsWithLessGas: true };
  }
  const half = await context.complete(wholeRun(execution, gas / 2n));
  return { result, holdsWithLessGas: half.status === "success" && formatData(half.returnData) === result };
};

/** Executes eth_estimateGas. Source: geth, eth/gasestimator. Throws RpcError. */
export const runEstimate = async (input: CallInput, context: WorkerContext): Promise<bigint> => {
  const execution = prepareExecution(input, context, { movesPrecompiles: false });
  return context.complete(stepsOf(execution, (steps) => estimateGas(execution, steps)));
};

export interface AccessListResult {
  readonly accessList: readonly AccessListEntry[];
  readonly gasUsed: bigint;
  readonly error?: string;
}

/** Executes eth_createAccessList: repeats the call with the list until the list does not change. Throws RpcError. */
export const runAccessList = async (input: CallInput, context: WorkerContext): Promise<AccessListResult> => {
  const execution = prepareExecution(input, context);
  return context.complete(
    stepsOf(execution, async ({ step, ...source }) => {
      let accessList: readonly AccessListEntry[] = execution.call.accessList ?? [];
      const created = await step(() => execution.createdContract(source));
      for (;;) {
        const listed = accessList;
        const result = await step(() => execution.run(source, execution.gas, listed));
        // Entries of the list are warm, and the trace omits warm entries.
        const next = mergeAccessLists(accessList, execution.filterAccessed(result.accessed ?? [], created));
        if (countEntries(next) === countEntries(accessList)) {
          const error = result.status === "success" ? {} : { error: callError(result).message };
          return { accessList: next, gasUsed: result.gasUsed, ...error };
        }
        accessList = next;
      }
    }),
  );
};

/** Each transaction starts on the state of the block, not on the state after the one before. */
const stepsOf = <T>({ engine }: CallExecution, execute: (steps: Steps) => Promise<T>): SteppedRun<T> => ({
  createState: (reader) => engine.createState(reader),
  execute,
});

const wholeRun = (execution: CallExecution, gas: bigint): SteppedRun<TransactionResult> => ({
  ...stepsOf(execution, ({ step, ...source }) => step((state) => execution.run({ ...source, state }, gas))),
  isWhole: true,
});

const mergeAccessLists = (
  one: readonly AccessListEntry[],
  other: readonly AccessListEntry[],
): readonly AccessListEntry[] => {
  const slots = new Map<Address, Set<Hash>>();
  for (const { address, storageKeys } of [...one, ...other]) {
    slots.set(address, new Set([...(slots.get(address) ?? []), ...storageKeys]));
  }
  return [...slots].map(([address, storageKeys]) => ({ address, storageKeys: [...storageKeys] }));
};

const countEntries = (list: readonly AccessListEntry[]): number =>
  list.reduce((sum, { storageKeys }) => sum + 1 + storageKeys.length, 0);

/** The runs of the simulator, by name. */
export const simulationRuns = {
  simulate: runSimulation,
  call: runCall,
  repeatedCall: runRepeatedCall,
  estimateGas: runEstimate,
  createAccessList: runAccessList,
};
