import { createUnitsOf } from "../../src/access/providerUnits.ts";
import { StateCost, type StateCostOptions, type UnitPurpose } from "../../src/state/cost.ts";
import { SourceGuard } from "../../src/state/sources/sourceGuard.ts";
import { UsedValues } from "../../src/state/store/usedValues.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

/** What a test of the follower says about costs: every source is worth its units. */
export const everySource = { shouldFollow: () => true, shouldCatchUp: () => false };

/** Creates a guard for which these nodes passed a check. */
export const createGuard = (passed: readonly string[] = ["one", "two"]): SourceGuard => {
  const guard = new SourceGuard({ cost: { spend: () => undefined }, nowMs: () => performance.now() });
  guard.nodes = passed;
  guard.pass(passed);
  return guard;
};

/** Creates the costs of a chain, with a clock of its own. `spent` has the units, oldest first. */
export const createCost = (options: Partial<StateCostOptions> = {}) => {
  const clock = { nowMs: 1_000_000, random: 0.5 };
  const spent: (readonly [UnitPurpose, number])[] = [];
  class RecordedCost extends StateCost {
    override spend(purpose: UnitPurpose, units: number): void {
      spent.push([purpose, units]);
      super.spend(purpose, units);
    }
  }
  const { metrics } = createTelemetry({ level: "silent" });
  const used = new UsedValues(() => clock.nowMs);
  const cost = new RecordedCost({
    ...{ chain: "chain", metrics, unitsOf: createUnitsOf(), unitsPerMinute: 30_000 },
    ...{ used, nowMs: () => clock.nowMs },
    ...options,
  });
  const total = () => spent.reduce((sum, [, units]) => sum + units, 0);
  return { cost, used, metrics, clock, spent, total };
};
