import type { RateLimits } from "../access/rateLimits.ts";
import { createOpsServer } from "../admin/opsServer.ts";
import type { Value } from "../admin/statusValues.ts";
import type { Config } from "../config/schema.ts";
import { HttpServer, type HttpServerOptions } from "../http/httpServer.ts";
import type { Places } from "../limits/places.ts";
import type { EntryStorage } from "../storage/dataStorage.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { UsageLedger } from "../telemetry/usageLedger.ts";
import { type ChainRuntime, createChainRuntime } from "./chainRuntime.ts";
import { openStorage, type Shared } from "./shared.ts";

/** The port for clients: of this process, or of the serving processes. */
export type ClientPort = Pick<HttpServer, "port" | "setRoutes" | "startDraining" | "close">;

/** The differences between a process alone, the main process of several, and a serving process. */
export interface ProcessRole {
  /** Returns the configuration with this process's share of all limits. */
  share(config: Config): Config;
  /** The usage by key. Default: that of this process alone, with its metrics. */
  readonly usages?: UsageLedger;
  /** Counts calls against limits without Redis. Default: those of this process alone. */
  readonly rates?: Pick<RateLimits, "take">;
  /** Counts connections against their limits. Default: those of this process alone. */
  readonly places?: Places;
  /** Returns the data folder of this process, or that of the main process. Undefined if no entries are stored there. */
  openStorage(config: Config, telemetry: Telemetry): EntryStorage | undefined;
  createChain(config: Config["chains"][number], shared: Shared): ChainRuntime;
  /** Reads the metrics of the serving processes. Resolves with the values of one metric by its name. Default: there are none. */
  readServingMetrics?(): Promise<(name: string) => readonly Value[]>;
  /** Opens the port for clients. */
  openHttp(options: HttpServerOptions): Promise<ClientPort>;
  /** Undefined if another process has the ops port. */
  readonly openOps: typeof createOpsServer | undefined;
}

/** One process that does everything. */
export const singleProcess: ProcessRole = {
  share: (config) => config,
  openStorage,
  createChain: createChainRuntime,
  openHttp: HttpServer.listen,
  openOps: createOpsServer,
};
