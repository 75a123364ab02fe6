import type { Clock } from "../core/clock.ts";
import type { Node } from "../core/node.ts";
import type { FairGate } from "../limits/fairGate.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { LogVerifier } from "../verification/logVerifier.ts";
import type { SegmentStore } from "./cachedSegments.ts";

/** What the log queries of one chain share. */
export interface LogsOptions {
  /** The chain's name, for metrics. */
  readonly chain: string;
  readonly nodes: readonly Node[];
  readonly store: SegmentStore;
  /** Shared by all chains of the process. */
  readonly slots: FairGate<Node>;
  /** Timeout of one fetch range on one node. */
  readonly rangeTimeoutMs?: number;
  readonly clock?: Clock;
  /** Limit of a response's size; `undefined` means no limit. */
  readonly maxResponseBytes?: number | undefined;
  /** If it is `undefined`, logs are not verified against filters, blooms and receipts. */
  readonly verifier?: LogVerifier;
  /** Number of origins that must have the same logs of a range: 1 or 2. */
  readonly agree: number;
  /** Counts received logs. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  readonly telemetry: Telemetry;
}
