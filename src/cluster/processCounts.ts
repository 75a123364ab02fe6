import type { Metrics } from "../telemetry/telemetry.ts";
import type { PlainMetrics } from "./chainProtocol.ts";

interface PlainValue {
  readonly value: number;
  readonly labels: Partial<Record<string, string | number>>;
}

interface PlainMetric {
  readonly name: string;
  readonly values: readonly PlainValue[];
}

/** Returns the values of one metric of a process. */
export const valuesOf = (metrics: PlainMetrics, name: string): readonly PlainValue[] =>
  (metrics as readonly PlainMetric[]).find((metric) => metric.name === name)?.values ?? [];

/** Counts the responses of each serving process. The counts of a process that replaces another begin at 0. Its number stays. */
export class ProcessCounts {
  readonly #metric: Metrics["processResponses"];
  readonly #lastSums = new Map<number, number>();

  constructor(metric: Metrics["processResponses"]) {
    this.#metric = metric;
  }

  record(process: number, metrics: PlainMetrics): void {
    const sum = valuesOf(metrics, "forebay_http_responses_total").reduce((total, { value }) => total + value, 0);
    const last = this.#lastSums.get(process) ?? 0;
    this.#lastSums.set(process, sum);
    this.#metric.inc({ process }, sum < last ? sum : sum - last);
  }
}
