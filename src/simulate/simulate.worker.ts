import { serveRuns } from "../evm/serveRuns.ts";
import { runSimulation } from "./runSimulation.ts";

serveRuns({ simulate: runSimulation });
