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

type OnDifference = (difference: StateDifference) => void;

/** Creates the report of a wrong value: its source rests, and it is counted and logged. The caller drops all values. */
export const createDifferenceReport =
  (
    { chain, trust, telemetry }: Omit<DifferenceHandlerOptions, "follower">,
    kind: "audit" | "sample" | "read",
  ): OnDifference =>
  ({ key, block, known, actual }) => {
    const source = trust.rest();
    telemetry.metrics.stateDifferences.inc({ chain, kind });
    telemetry.log.error(
      { chain, kind, source, ...key, number: block.number.toString(), hash: block.hash, known, actual },
      "a known state value differs from the node's: all values are dropped, and their source rests",
    );
  };

/** Creates the reaction to a wrong value: the report, and all values are dropped. */
export const createDifferenceHandler = (options: DifferenceHandlerOptions, kind: "audit" | "sample"): OnDifference => {
  const report = createDifferenceReport(options, kind);
  return (difference) => {
    report(difference);
    options.follower.forget("difference");
  };
};
