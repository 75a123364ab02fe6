import { setTimeout as wait } from "node:timers/promises";
import { until } from "../support/clients/until.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { ABSENT } from "./fireAlerts.ts";
import { startPrometheus } from "./prometheusServer.ts";
import { startQuietKinds } from "./quietKinds.ts";
import { scaleRules } from "./scaledRules.ts";

/** They show the load of the machine, which tests share, and are pending after one busy second or one slow call. */
const MEASURE_MACHINE = ["ForebayEventLoop", "ForebaySlow"];
const STEP_MS = 500;

export interface WatchOptions {
  /** Durations of the rules are divided by this. */
  readonly divisor: number;
  readonly seconds: number;
}

/**
 * Starts processes of each kind and a Prometheus with the rules. Returns the alerts that were raised within a time, and as many scrapes
 * as it has seconds.
 */
export const watchAlerts = async (t: Lifespan, { divisor, seconds }: WatchOptions) => {
  const { targets, call } = await startQuietKinds(t);
  const prometheus = await startPrometheus(targets, scaleRules({ divisor, maxSeconds: Number.POSITIVE_INFINITY }));
  t.after(() => prometheus.close());
  const jobs = Object.keys(targets).length;
  await until(async () => (await prometheus.query("up == 1")).length === jobs, "all processes are scraped");
  // It is pending before the first scrape, until the rules are evaluated after it.
  await until(
    async () => (await prometheus.raised()).every(({ name }) => name !== ABSENT),
    "they are known to the rules",
  );
  const raised = new Set<string>();
  const startMs = performance.now();
  /** A busy Prometheus leaves scrapes out. */
  const isScraped = async (): Promise<boolean> => {
    const tookSeconds = Math.ceil((performance.now() - startMs) / 1_000);
    const counts = await prometheus.query(`count_over_time(up[${tookSeconds}s])`);
    return tookSeconds > seconds && counts.length === jobs && counts.every(({ value }) => value >= seconds);
  };
  while (!(await isScraped())) {
    await call();
    for (const { name, state, job } of await prometheus.raised()) {
      if (!MEASURE_MACHINE.includes(name) || state === "firing") {
        raised.add(`${name} is ${state} (${job})`);
      }
    }
    await wait(STEP_MS);
  }
  return [...raised];
};
