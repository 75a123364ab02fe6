import { createTelemetry, type Telemetry } from "../../../src/telemetry/telemetry.ts";

/** Telemetry that logs nothing. */
export const silent = (): Telemetry => createTelemetry({ level: "silent" });
