import { createEngines } from "../../src/evm/createEngines.ts";
import { evmTask } from "../../src/evm/runs/evmTask.ts";
import { runCall } from "../../src/simulation/simulationTask.ts";
import { startTask } from "../../src/threads/threadTask.ts";
import { faultyEngines } from "../support/builders/faultyEngines.ts";

/** Executes calls with an engine that returns one byte too many when the output has 32 bytes. The reference has no fault. */
await startTask(
  evmTask({ call: runCall }, async (kind) => {
    const engines = await createEngines(kind);
    if (kind === "reference") {
      return engines;
    }
    return faultyEngines(engines, (result) =>
      result.returnData.length === 32 ? { ...result, returnData: new Uint8Array(33) } : result,
    );
  }),
);
