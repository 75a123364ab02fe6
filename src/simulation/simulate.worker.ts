import { serveRuns } from "../evm/serveRuns.ts";
import { runAccessList, runCall, runEstimate } from "./callRuns.ts";
import { runSimulation } from "./runSimulation.ts";

serveRuns({ simulate: runSimulation, call: runCall, estimateGas: runEstimate, createAccessList: runAccessList });
