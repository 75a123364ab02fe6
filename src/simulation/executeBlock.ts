import type { Hash } from "../ethereum/hex.ts";
import { smallestFootprint } from "../ethereum/opFees.ts";
import { type ChainForks, isForkActive, isOpForkActive, type Rules } from "../ethereum/rules.ts";
import type { BlockEnvironment, Engine, EngineLog } from "../evm/engine.ts";
import { footprintScalarOf } from "../evm/opChainFees.ts";
import type { ReadRecorder } from "../evm/readRecorder.ts";
import type { Step } from "../evm/reads/steppedRun.ts";
import { type BlockStart, startCalls, writeStartSlots } from "../evm/systemCalls.ts";
import { BlockGasPool } from "./blockGasPool.ts";
import type { PlannedBlock } from "./blockPlan.ts";
import type { OutputLimit } from "./outputLimit.ts";
import { overrideState } from "./overrideState.ts";
import { type RequestContracts, runRequests } from "./requests.ts";
import { type GasBudget, type SimulatedCall, simulateCall } from "./simulateCall.ts";
import type { Profile } from "./simulatedHeader.ts";

const WEI_PER_GWEI = 1_000_000_000n;

export interface ExecutionOptions {
  readonly profile: Profile;
  readonly validates: boolean;
  readonly tracesTransfers: boolean;
  readonly forks: ChainForks;
  readonly rules: Rules;
  readonly engine: Engine;
  readonly step: Step;
  readonly reads?: ReadRecorder | undefined;
  readonly budget: GasBudget;
  readonly output: OutputLimit;
}

interface BlockExecution extends ExecutionOptions {
  readonly start: BlockStart;
  readonly block: BlockEnvironment;
}

export interface ExecutedBlock {
  readonly calls: readonly SimulatedCall[];
  readonly gasUsed: bigint;
  /** The data footprint of one call. Undefined before Jovian. */
  readonly footprint: bigint | undefined;
  /** Undefined if the block has no requests. */
  readonly requestsHash: Hash | undefined;
}

/** Executes overrides, system calls, the client's calls and withdrawals. Each transaction, and each other access to the state, is a step. */
export const executeBlock = async (planned: PlannedBlock, execution: BlockExecution): Promise<ExecutedBlock> => {
  const { engine, step, reads } = execution;
  const movedPrecompiles = await step((state) => overrideState(state, planned.states, engine.precompiles, reads));
  await beginSystem(execution);
  // The read comes before the calls, so that one round fetches this value and theirs.
  const footprint = await footprintOfCall(execution, planned);
  const { gasUsed, calls } = await executeCalls(planned, { ...execution, movedPrecompiles });
  const requestsHash = await requestsOf(execution, calls);
  await creditWithdrawals(execution, planned);
  return { calls, gasUsed, footprint, requestsHash };
};

/** geth calls the system contracts. The other profile writes their slots, so that their state need not be fetched. */
const beginSystem = async ({ profile, engine, step, block, reads, start }: BlockExecution): Promise<void> => {
  if (profile !== "geth") {
    await step((state) => writeStartSlots({ engine, state, block }, start));
    return;
  }
  for (const [to, data] of startCalls(engine, start)) {
    await step((state) => engine.systemCall({ state, block, reads }, to, data));
  }
};

/** Jovian counts data in `blobGasUsed`. OP-stack nodes simulate with an empty envelope, so each call has the smallest size. */
const footprintOfCall = async (
  { rules, step, reads }: BlockExecution,
  { calls }: PlannedBlock,
): Promise<bigint | undefined> => {
  if (!isOpForkActive(rules, "jovian")) {
    return undefined;
  }
  return calls.length === 0 ? 0n : smallestFootprint(await step((state) => footprintScalarOf({ state, reads })));
};

const executeCalls = async (
  planned: PlannedBlock,
  execution: BlockExecution & { readonly movedPrecompiles: ReturnType<typeof overrideState> },
): Promise<Pick<ExecutedBlock, "calls" | "gasUsed">> => {
  const { rules, validates, budget, output, step, block } = execution;
  const gas = new BlockGasPool({ limit: block.gasLimit, isAmsterdam: isForkActive(rules, "amsterdam"), validates });
  const calls: SimulatedCall[] = [];
  for (const request of planned.calls) {
    const call = await step((state) => simulateCall(request, { ...execution, state, gas }));
    budget.left -= call.result.gasUsed;
    gas.add(call.result);
    output.add(call);
    calls.push(call);
  }
  return { calls, gasUsed: gas.used };
};

/** The logs of a call that are part of its receipt. */
export const realLogs = (logs: readonly EngineLog[]) => logs.filter(({ isTransfer }) => !isTransfer);

const requestsOf = async (
  { profile, rules, engine, forks, step, block, reads }: BlockExecution,
  calls: readonly SimulatedCall[],
): Promise<Hash | undefined> => {
  if (profile !== "geth" || rules.op !== undefined || !isForkActive(rules, "prague")) {
    return undefined;
  }
  const logs = calls.flatMap(({ result }) => realLogs(result.logs));
  const contracts: RequestContracts = {
    isActive: (eip) => engine.isActive(eip),
    call: (contract, data) => step((state) => engine.systemCall({ state, block, reads }, contract, data)),
  };
  return runRequests(contracts, logs, forks.depositContract);
};

const creditWithdrawals = async ({ step }: BlockExecution, { overrides }: PlannedBlock): Promise<void> => {
  for (const { address, amount } of overrides.withdrawals ?? []) {
    await step((state) => state.addBalance(address, amount * WEI_PER_GWEI));
  }
  await step((state) => state.endTransaction(true));
};
