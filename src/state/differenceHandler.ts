import type { Telemetry } from "../telemetry/telemetry.ts";
import type { SourceTrust } from "./sourceTrust.ts";
import type { StateDifference } from "./stateAudit.ts";
import type { StateFollower } from "./stateFollower.ts";

export interface DifferenceHandlerOptions {
  readonly chain: string;
  readonly trust: Pick<SourceTrust, "rest">;
  readonly follower: Pick<StateFollower, "forget">;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** Creates the reaction to a wrong value: all values are dropped, and their source rests. */
export const createDifferenceHandler =
  ({ chain, trust, follower, telemetry }: DifferenceHandlerOptions, kind: "audit" | "sample") =>
  ({ key, block, known, actual }: StateDifference): void => {
    const source = trust.rest();
    follower.forget("difference");
    telemetry.metrics.stateDifferences.inc({ chain, kind });
    telemetry.log.error(
      { chain, kind, source, ...key, number: block.number.toString(), hash: block.hash, known, actual },
      "a known state value differs from the node's: all values are dropped, and their source rests",
    );
  };
