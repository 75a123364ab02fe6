import type { ChainConfig } from "../config/schema.ts";
import type { WriteSetSource } from "../state/writeSet.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Upstreams } from "./upstreams.ts";

export interface WriteSetSourcesOptions {
  readonly config: Pick<ChainConfig, "name" | "state">;
  readonly upstreams: Upstreams;
  readonly telemetry: Telemetry;
}

/** Creates the sources of write sets that `state.source` allows, in the order in which they are asked. */
export const createWriteSetSources = (_options: WriteSetSourcesOptions): readonly WriteSetSource[] => [];
