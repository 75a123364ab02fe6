import type { Config } from "../config/schema.ts";
import { loadTracer } from "../telemetry/loadTracer.ts";
import { createTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import { createProcess, type Forebay, type Ports, readVersion } from "./main.ts";

/** A running forebay with its log and its metrics. */
export interface StartedForebay {
  readonly forebay: Forebay;
  readonly telemetry: Telemetry;
}

/**
 * Starts forebay with the configured log and tracing: for the command, and for a program that uses it as a library.
 * Rejects if a port is in use.
 */
export const startForebay = async (config: Config, ports?: Ports): Promise<StartedForebay> => {
  const tracer = await loadTracer(config.tracing, process.env, readVersion());
  const telemetry = createTelemetry({ level: config.log.level, tracer });
  return { forebay: await createProcess(config, telemetry, ports), telemetry };
};
