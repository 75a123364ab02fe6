import { evmTask } from "../evm/evmTask.ts";
import { runAccessList, runCall, runEstimate } from "./callRuns.ts";
import { runSimulation } from "./runSimulation.ts";

/** The task of a thread that simulates. */
export const simulationTask = evmTask({
  simulate: runSimulation,
  call: runCall,
  estimateGas: runEstimate,
  createAccessList: runAccessList,
});
