import type { Config } from "../config/schema.ts";
import { loadTracer } from "../telemetry/loadTracer.ts";
import { createTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import { createProcess, type Forebay, readVersion } from "./main.ts";
import type { ProcessRole } from "./processRole.ts";
import { countProcesses } from "./processShare.ts";

/** A running forebay with its log and its metrics. */
export interface StartedForebay {
  readonly forebay: Forebay;
  readonly telemetry: Telemetry;
}

/**
 * Starts forebay with the configured log and tracing: for the command, and for a program that uses it as a library.
 * Without a role, it is one process, or the main process of several. Rejects if a port is in use.
 */
export const startForebay = async (config: Config, role?: ProcessRole): Promise<StartedForebay> => {
  const tracer = await loadTracer(config.tracing, process.env, readVersion());
  const telemetry = createTelemetry({ level: config.log.level, tracer });
  if (role !== undefined || countProcesses(config) === 1) {
    return { forebay: await createProcess(config, telemetry, role), telemetry };
  }
  const { createMainProcess } = await import("./mainProcess.ts");
  return { forebay: await createMainProcess(config, telemetry), telemetry };
};
