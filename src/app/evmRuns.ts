import { messageRuns } from "../pending/messageExecutor.ts";
import { evmTask } from "../runs/evmTask.ts";
import { simulationRuns } from "../simulation/simulationRuns.ts";
import type { ThreadTask } from "../threads/threadTask.ts";

/** The task of each thread that executes EVM code: clients' runs, or the feed's messages. */
export const evmRunsTask: ThreadTask = (port, data) => evmTask({ ...simulationRuns, ...messageRuns() })(port, data);
