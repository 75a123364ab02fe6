import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";

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
    alerts: z.array(z.object({ state: z.string(), labels: z.looseObject({ alertname: z.string() }) })),
  }),
});

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface PrometheusServer {
  readonly url: string;
  /** Names of the alerts that fire now. */
  firing(): Promise<ReadonlySet<string>>;
  /** Returns the series of an expression now. Rejects with the error of Prometheus. */
  query(expr: string): Promise<readonly Sample[]>;
  close(): Promise<void>;
}

/** Finds a free port, because Prometheus does not report the port that it chose. */
const freePort = async (): Promise<number> => {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  server.close();
  if (typeof address !== "object" || address === null) {
    throw new Error("no port");
  }
  return address.port;
};

/** Starts a real Prometheus with one target. It scrapes the target and evaluates `rules` (YAML) every second. */
export const startPrometheus = async (target: string, rules = "groups: []"): Promise<PrometheusServer> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-prometheus-"));
  const config = {
    global: { evaluation_interval: "1s" },
    rule_files: ["rules.yaml"],
    scrape_configs: [{ job_name: "forebay", scrape_interval: "1s", static_configs: [{ targets: [target] }] }],
  };
  await writeFile(join(folder, "prometheus.yml"), JSON.stringify(config));
  await writeFile(join(folder, "rules.yaml"), rules);
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
  for await (const line of createInterface({ input: child.stderr })) {
    if (line.includes("Server is ready")) {
      break;
    }
  }
  child.stderr.resume();

  return {
    url: `http://${listen}`,
    firing: async () => {
      const response = await fetch(`http://${listen}/api/v1/alerts`);
      const { alerts } = alertsAnswer.parse(await response.json()).data;
      return new Set(alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname));
    },
    query: async (expr) => {
      const response = await fetch(`http://${listen}/api/v1/query?${new URLSearchParams({ query: expr })}`);
      const result = answer.parse(await response.json());
      if (result.status === "error") {
        throw new Error(`${expr}: ${result.error}`);
      }
      return result.data.result.map(({ metric, value: [, text] }) => ({ labels: metric, value: Number(text) }));
    },
    close: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
};
