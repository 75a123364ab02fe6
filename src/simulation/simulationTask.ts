import { evmTask } from "../evm/runs/evmTask.ts";
import { runRecoverSenders } from "../evm/senders/recoverSendersRun.ts";
import { runAccessList, runCall, runEstimate, runRepeatedCall } from "./callRuns.ts";
import { runSimulation } from "./runSimulation.ts";

/** The task of a thread that simulates, and recovers senders between simulations. */
export const simulationTask = evmTask({
  simulate: runSimulation,
  call: runCall,
  repeatedCall: runRepeatedCall,
  estimateGas: runEstimate,
  createAccessList: runAccessList,
  recoverSenders: runRecoverSenders,
});
