import { createUnitsOf } from "../../src/access/providerUnits.ts";
import { SourceTrust, type SourceTrustOptions } from "../../src/state/sourceTrust.ts";
import { StateCost, type StateCostOptions, type UnitPurpose } from "../../src/state/stateCost.ts";
import { UsedValues } from "../../src/state/store/usedValues.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

/** What a test of the follower says about costs: every source is worth its units. */
export const everySource = { shouldFollow: () => true, shouldCatchUp: () => false };

/** Creates the trust in sources, by default in all of them. */
export const createTrust = (options: Partial<SourceTrustOptions> = {}): SourceTrust =>
  new SourceTrust({
    ...{ cost: { spend: () => undefined }, nowMs: () => performance.now(), probation: { blocks: 0, values: 0 } },
    ...options,
  });

/** Creates the costs of a chain, with a clock of its own. `spent` has the units, oldest first. */
export const createCost = (options: Partial<StateCostOptions> = {}) => {
  const clock = { nowMs: 1_000_000, random: 0.5 };
  const spent: (readonly [UnitPurpose, number])[] = [];
  class RecordedCost extends StateCost {
    override spend(purpose: UnitPurpose, units: number, clientId?: string): void {
      spent.push([purpose, units]);
      super.spend(purpose, units, clientId);
    }
  }
  const { metrics } = createTelemetry({ level: "silent" });
  const used = new UsedValues(() => clock.nowMs);
  const cost = new RecordedCost({
    ...{ chain: "chain", metrics, unitsOf: createUnitsOf(), learning: { share: 0.08, unitsPerMinute: 30_000 } },
    ...{ used, nowMs: () => clock.nowMs, random: () => clock.random },
    ...options,
  });
  const total = () => spent.reduce((sum, [, units]) => sum + units, 0);
  return { cost, used, metrics, clock, spent, total };
};
