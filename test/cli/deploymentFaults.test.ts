import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { createProcess } from "../../src/app/main.ts";
import { checkConfig } from "../../src/cli/check.ts";
import { formatCheckResult } from "../../src/cli/checkResult.ts";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis } from "../support/servers/redis.ts";

const BIN = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
/** Nothing listens on port 9 (discard). */
const DEAD = "127.0.0.1:9";

const FAST_BREAKER = { breaker: { failures: 2 } };

interface Row {
  readonly log: readonly string[];
  readonly check: readonly string[];
  readonly metric: string;
  /** For example `is 0`, `above 1`. */
  readonly condition: string;
  readonly alert: string;
}

const codesOf = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

/** The table of faults of docs/runbook.md. */
const rows = new Map(
  readRepositoryFile("docs/runbook.md")
    .split("\n")
    .filter((line) => line.includes("| Forebay"))
    .map((line): [string, Row] => {
      const [, fault = "", log = "", check = "", sample = "", alert = ""] = line.split("|").map((cell) => cell.trim());
      const [, name = "", condition = ""] = /^`(\w+)` (.+)$/.exec(sample) ?? [];
      return [fault, { log: codesOf(log), check: codesOf(check), metric: name, condition, alert }];
    }),
);

const startNode = async (t: TestContext) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  return node;
};

const chainOf = (url: string) => ({ name: "op", chainId: 31_337, nodes: [{ url }] });

const withRedis = async (t: TestContext, redis: string) => ({
  chains: [chainOf((await startNode(t)).url)],
  cache: { redis },
});

/** The configuration that causes each fault. */
const FAULTS: Readonly<Record<string, (t: TestContext) => Promise<object>>> = {
  "Redis: nothing listens": (t) => withRedis(t, `redis://${DEAD}`),
  "Redis: unknown host": (t) => withRedis(t, "redis://redis.invalid:6379"),
  "Redis: TLS is missing": async (t) => {
    const { port } = await startRedis(t, { tls: true });
    return withRedis(t, `redis://127.0.0.1:${port}`);
  },
  "Redis: wrong password": async (t) => {
    const { port } = await startRedis(t, { password: "secret" });
    return withRedis(t, `redis://:terces@127.0.0.1:${port}`);
  },
  "Redis: no password": async (t) => {
    const { port } = await startRedis(t, { password: "secret" });
    return withRedis(t, `redis://127.0.0.1:${port}`);
  },
  "Feed is dead": async (t) => {
    const { url } = await startNode(t);
    return { chains: [{ ...chainOf(url), pending: { feeds: [`ws://${DEAD}`] } }] };
  },
  "WebSocket of a node is dead": async (t) => {
    const { url } = await startNode(t);
    return { chains: [{ ...chainOf(url), nodes: [{ url, wsUrl: `ws://${DEAD}` }] }] };
  },
  "Node is dead": async (t) => {
    const { url } = await startNode(t);
    return { chains: [{ ...chainOf(url), nodes: [{ url }, { url: `http://${DEAD}` }], upstream: FAST_BREAKER }] };
  },
  "Node of another chain": async (t) => {
    const { url } = await startNode(t);
    return { chains: [{ ...chainOf(url), chainId: 10 }] };
  },
};

const writeConfig = async (t: TestContext, config: object): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-faults-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "forebay.yaml");
  await writeFile(file, JSON.stringify({ ...config, server: { port: 0, opsPort: 0, drainDelayMs: 0 } }));
  return file;
};

/** Starts forebay as the command does, but in this process. Returns its log lines so far, and the URL of its ops port. */
const startForebay = async (t: TestContext, file: string) => {
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line) => void lines.push(line) });
  const config = readConfig(readArguments(["--config", file], {}), {});
  const forebay = await createProcess(config, { ...createTelemetry({ level: "silent" }), log });
  t.after(() => forebay.close());
  return { lines, opsUrl: forebay.opsUrl };
};

/** Returns whether `forebay check` finds a fault, and its lines. */
const runCheck = async (file: string) => {
  const results = await checkConfig(readConfig(readArguments(["check", "--config", file], {}), {}));
  return { hasFault: results.some(({ level }) => level === "fault"), lines: results.map(formatCheckResult) };
};

/** Whether one series of the metric meets the condition of the row. */
const isMet = async (opsUrl: string, row: Row): Promise<boolean> => {
  const [relation, limit] = row.condition.split(" ");
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return [...text.matchAll(new RegExp(`^${row.metric}(?:\\{.*\\})? (.+)$`, "gm"))].some(([, value]) =>
    relation === "is" ? Number(value) === Number(limit) : Number(value) > Number(limit),
  );
};

const alertText = (name: string): string =>
  readRepositoryFile("grafana/alerts.yaml")
    .split("- alert: ")
    .find((text) => text.startsWith(`${name}\n`)) ?? "";

for (const [fault, configOf] of Object.entries(FAULTS)) {
  test(`${fault}: log line, check, metric and alert`, async (t) => {
    const row = rows.get(fault);
    assert.ok(row && row.log.length > 0 && row.check.length > 0, "the page has a row");
    const file = await writeConfig(t, await configOf(t));
    const { lines, opsUrl } = await startForebay(t, file);
    const isLogged = () => lines.some((line) => row.log.every((part) => line.includes(part)));
    await until(() => Promise.resolve(isLogged()), `${row.log.join()} is logged`);
    await until(() => isMet(opsUrl, row), `${row.metric} ${row.condition}`);
    const checked = await runCheck(file);
    assert.ok(checked.hasFault, "the command fails");
    assert.ok(
      checked.lines.some((line) => row.check.every((part) => line.includes(part))),
      checked.lines.join("\n"),
    );
    assert.ok(alertText(row.alert).includes(row.metric), row.alert);
  });
}

test('the command "check" prints a fault, and ends with 1', async (t) => {
  const file = await writeConfig(t, await withRedis(t, `redis://${DEAD}`));
  const child = spawn(execPath, [BIN, "check", "--config", file], { stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, "close");
  assert.equal(code, 1);
  const check = rows.get("Redis: nothing listens")?.check ?? [];
  assert.ok(check.length > 0);
  const text = Buffer.concat(chunks).toString();
  assert.ok(
    text.split("\n").some((line) => check.every((part) => line.includes(part))),
    text,
  );
});

test("every row of the page is a tested fault", () => {
  assert.deepEqual([...rows.keys()], Object.keys(FAULTS));
});
