import { workerMain } from "../evm/workerMain.ts";
import { runAccessList, runCall, runEstimate } from "./callRuns.ts";
import { runSimulation } from "./runSimulation.ts";

workerMain({ simulate: runSimulation, call: runCall, estimateGas: runEstimate, createAccessList: runAccessList });
