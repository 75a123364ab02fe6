import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { freePort } from "../support/servers/ports.ts";

const sample = z.object({
  metric: z.record(z.string(), z.string()),
  value: z.tuple([z.number(), z.string()]),
});

const answer = z.discriminatedUnion("status", [
  z.object({ status: z.literal("success"), data: z.object({ result: z.array(sample) }) }),
  z.object({ status: z.literal("error"), error: z.string() }),
]);

const alertsAnswer = z.object({
  data: z.object({
    alerts: z.array(
      z.object({ state: z.enum(["pending", "firing"]), labels: z.looseObject({ alertname: z.string() }) }),
    ),
  }),
});

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** An alert that is pending or fires. */
export interface RaisedAlert {
  readonly name: string;
  readonly state: "pending" | "firing";
  /** The job of its series. Undefined for an alert on missing series. */
  readonly job: string | undefined;
}

export interface PrometheusServer {
  readonly url: string;
  /** The alerts that are pending or fire now. */
  raised(): Promise<readonly RaisedAlert[]>;
  /** Names of the alerts that fire now. */
  firing(): Promise<ReadonlySet<string>>;
  /** Returns the series of an expression now. Rejects with the error of Prometheus. */
  query(expr: string): Promise<readonly Sample[]>;
  close(): Promise<void>;
}

/** Starts a real Prometheus. It scrapes one target, or one for each job, and evaluates `rules` (YAML) every second. */
export const startPrometheus = async (
  targets: string | Readonly<Record<string, string>>,
  rules = "groups: []",
  scrapeSeconds = 1,
): Promise<PrometheusServer> => {
  const jobs = typeof targets === "string" ? { forebay: targets } : targets;
  const folder = await mkdtemp(join(tmpdir(), "forebay-prometheus-"));
  const config = {
    global: { evaluation_interval: "1s" },
    rule_files: ["rules.yaml"],
    scrape_configs: Object.entries(jobs).map(([job, target]) => ({
      job_name: job,
      scrape_interval: `${scrapeSeconds}s`,
      static_configs: [{ targets: [target] }],
    })),
  };
  await writeFile(join(folder, "prometheus.yml"), JSON.stringify(config));
  await writeFile(join(folder, "rules.yaml"), rules);
  // Prometheus does not report the port that it chose.
  const listen = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=${listen}`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = once(child, "exit");
  for await (const line of createInterface({ input: child.stderr })) {
    if (line.includes("Server is ready")) {
      break;
    }
  }
  child.stderr.resume();

  const raised = async (): Promise<readonly RaisedAlert[]> => {
    const response = await fetch(`http://${listen}/api/v1/alerts`);
    const { alerts } = alertsAnswer.parse(await response.json()).data;
    return alerts.map(({ state, labels: { alertname: name, job } }) => ({
      name,
      state,
      job: typeof job === "string" ? job : undefined,
    }));
  };

  return {
    url: `http://${listen}`,
    raised,
    firing: async () => new Set((await raised()).filter(({ state }) => state === "firing").map(({ name }) => name)),
    query: async (expr) => {
      const response = await fetch(`http://${listen}/api/v1/query?${new URLSearchParams({ query: expr })}`);
      const result = answer.parse(await response.json());
      if (result.status === "error") {
        throw new Error(`${expr}: ${result.error}`);
      }
      return result.data.result.map(({ metric, value: [, text] }) => ({ labels: metric, value: Number(text) }));
    },
    close: async () => {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
};
