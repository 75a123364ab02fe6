import { setTimeout as wait } from "node:timers/promises";
import { until } from "../support/clients/until.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import type { AlertFault, FaultyProcess } from "./faults/alertFault.ts";
import { EXECUTION_FAULTS } from "./faults/executionFaults.ts";
import { FEED_FAULTS } from "./faults/feedFaults.ts";
import { NODE_FAULTS } from "./faults/nodeFaults.ts";
import { PROCESS_FAULTS } from "./faults/processFaults.ts";
import { type PrometheusServer, startPrometheus } from "./prometheusServer.ts";
import { type Rule, scaleRules } from "./scaledRules.ts";

/** Every alert is in one of these files, with a real fault that fires it. */
export const FAULTS: Readonly<Record<string, AlertFault>> = {
  ...NODE_FAULTS,
  ...FEED_FAULTS,
  ...EXECUTION_FAULTS,
  ...PROCESS_FAULTS,
};

/** Fires if nothing is scraped: its fault is the end of all processes. */
export const ABSENT = "ForebayAbsent";

const STEP_MS = 300;
/** The threshold of the default suits a process with 1.5 GB. The test fills less. */
const LESS_MEMORY = "3e8";

const withLessMemory = (rule: Rule): Rule =>
  rule.alert === "ForebayMemory" ? { ...rule, expr: rule.expr.replace("1.5e9", LESS_MEMORY) } : rule;

export interface FireOptions {
  /** Durations of the rules are divided by this. */
  readonly divisor: number;
  /** No `for` and no window is longer. */
  readonly maxSeconds: number;
  /** The time to which "yesterday" is shortened. */
  readonly maxOffsetSeconds: number;
  /** Seconds between two scrapes. Default: 1. A scrape that takes longer is a gap, and a gap ends what is pending. */
  readonly scrapeSeconds?: number;
  /** Alerts that have not fired within this time are missing. */
  readonly limitMs: number;
  /** Only faults whose name matches. Default: all. */
  readonly only?: RegExp;
}

interface Started extends FaultyProcess {
  readonly fault: string;
  readonly alerts: readonly string[];
}

/** The job of a fault in Prometheus. */
const jobOf = (fault: string): string => fault.replaceAll(/\W+/g, "-");

/** Calls the process again and again until its alerts have fired. Returns the alerts that did not. */
const awaitAlerts = async (
  process: Started,
  prometheus: PrometheusServer,
  limitMs: number,
): Promise<readonly string[]> => {
  const { fault, alerts, begin, call } = process;
  let missing = alerts;
  const endMs = performance.now() + limitMs;
  const keepCalling = async (): Promise<void> => {
    while (call !== undefined && missing.length > 0 && performance.now() < endMs) {
      // A process that is busy or ends may reset the connection. The alerts decide.
      await call().catch(() => undefined);
      await wait(STEP_MS);
    }
  };
  const calling = keepCalling();
  await begin?.();
  while (missing.length > 0 && performance.now() < endMs) {
    await wait(STEP_MS);
    // Some fire for seconds only, and this process is busy.
    const fired = await prometheus.query(
      `count by (alertname) (max_over_time(ALERTS{alertstate="firing",job="${jobOf(fault)}"}[${Math.ceil(limitMs / 1_000)}s]))`,
    );
    missing = missing.filter((alert) => !fired.some(({ labels }) => labels.alertname === alert));
  }
  await calling;
  return missing.map((alert) => `${alert}: ${fault}`);
};

/** Starts each fault in a process of its own, with one Prometheus. Returns the alerts that did not fire. */
export const fireAlerts = async (t: Lifespan, options: FireOptions): Promise<readonly string[]> => {
  const { maxOffsetSeconds, limitMs, scrapeSeconds, only = /./ } = options;
  const faults = Object.entries(FAULTS).filter(([fault]) => only.test(fault));
  const started: readonly Started[] = await Promise.all(
    faults.map(async ([fault, { alerts, start }]) => ({
      ...(await start(t, { maxOffsetSeconds })),
      fault,
      alerts,
    })),
  );
  const targets = Object.fromEntries(started.map(({ fault, opsUrl }) => [jobOf(fault), new URL(opsUrl).host]));
  const prometheus = await startPrometheus(targets, scaleRules({ ...options, change: withLessMemory }), scrapeSeconds);
  t.after(() => prometheus.close());
  await until(async () => (await prometheus.query("up == 1")).length === started.length, "all processes are scraped");
  const missing = await Promise.all(started.map((process) => awaitAlerts(process, prometheus, limitMs)));
  return missing.flat();
};
