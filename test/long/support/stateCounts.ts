import type { Service } from "../../support/servers/service.ts";

type Counter =
  | "stateWriteSets"
  | "stateDrops"
  | "stateWaits"
  | "stateUnitsSpent"
  | "pendingMismatches"
  | "feedMessages"
  | "pendingDropped"
  | "pendingAnswers";

/** Returns the values of a metric by one of its labels. */
export const countedBy = async ({ telemetry }: Service, name: Counter, label: string) => {
  const { values } = await telemetry.metrics[name].get();
  const counts: Record<string, number> = {};
  for (const { labels, value } of values) {
    const of = new Map(Object.entries(labels)).get(label);
    if (value > 0 && of !== undefined) {
      counts[of] = (counts[of] ?? 0) + value;
    }
  }
  return counts;
};

/** Returns how often the service found a wrong value, by a check, a sample or a response to a client. */
export const foundByService = async ({ telemetry }: Service): Promise<number> => {
  const { values } = await telemetry.metrics.stateDifferences.get();
  return values.reduce((sum, { value }) => sum + value, 0);
};

/** Returns the counts of write sets, drops and waits of a service. */
export const stateCounts = async (service: Service) => ({
  foundByService: await foundByService(service),
  sources: await countedBy(service, "stateWriteSets", "source"),
  writeSets: await countedBy(service, "stateWriteSets", "outcome"),
  drops: await countedBy(service, "stateDrops", "reason"),
  unitsSpent: await countedBy(service, "stateUnitsSpent", "purpose"),
  waits: await countedBy(service, "stateWaits", "result"),
});
