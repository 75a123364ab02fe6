import type { UnitsOf } from "../access/providerUnits.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import type { OwnHashes } from "../verification/checkHeader.ts";
import type { Shared } from "./shared.ts";

/** What the parts of one chain are built on, that of its reads included. */
export interface ChainBase {
  readonly config: ChainConfig;
  /** The parts that all chains share, with the telemetry of this chain. */
  readonly shared: Shared;
  readonly upstreams: Upstreams;
  readonly unitsOf: UnitsOf;
  /** Of the headers in the block ring. */
  readonly ownHashes: OwnHashes;
  /** Aborts when the chain ends. */
  readonly signal: AbortSignal;
}
