import { setTimeout as wait } from "node:timers/promises";
import { until } from "../support/clients/until.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { startPrometheus } from "./prometheusServer.ts";
import { startQuietKinds } from "./quietKinds.ts";
import { scaleRules } from "./scaledRules.ts";

/** Shows the load of the machine, which tests share, and is pending after one busy second. */
const MEASURES_MACHINE = "ForebayEventLoop";
const STEP_MS = 500;

export interface WatchOptions {
  /** Durations of the rules are divided by this. */
  readonly divisor: number;
  readonly seconds: number;
}

/** Starts processes of each kind and a Prometheus with the rules. Returns the alerts that were raised within a time. */
export const watchAlerts = async (t: Lifespan, { divisor, seconds }: WatchOptions) => {
  const { targets, call } = await startQuietKinds(t);
  const prometheus = await startPrometheus(targets, scaleRules({ divisor, maxSeconds: Number.POSITIVE_INFINITY }));
  t.after(() => prometheus.close());
  const jobs = Object.keys(targets).length;
  await until(async () => (await prometheus.query("up == 1")).length === jobs, "all processes are scraped");
  const raised = new Set<string>();
  const endMs = performance.now() + seconds * 1_000;
  while (performance.now() < endMs) {
    await call();
    for (const { name, state, job } of await prometheus.raised()) {
      if (name !== MEASURES_MACHINE || state === "firing") {
        raised.add(`${name} is ${state} (${job})`);
      }
    }
    await wait(STEP_MS);
  }
  const counts = await prometheus.query(`count_over_time(up[${Math.ceil(seconds)}s])`);
  return { raised: [...raised], scrapes: Math.min(...counts.map(({ value }) => value)) };
};
