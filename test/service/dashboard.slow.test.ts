import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { selectAll } from "../../grafana/queries.ts";
import { ROWS } from "../../grafana/rows.ts";
import { rulesFile } from "../../grafana/rulesFile.ts";
import { createDevnet } from "../devnet/devnet.ts";
import { startPrometheus } from "../grafana/prometheusServer.ts";
import { scaleRules } from "../grafana/scaledRules.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;

interface Expression {
  readonly name: string;
  readonly expr: string;
}

const panels = (): readonly Expression[] =>
  ROWS.flatMap(({ title: row, panels: list }) =>
    list.flatMap(({ title, queries }) =>
      queries.map(({ expr }) => ({
        name: `${row} / ${title}`,
        expr: selectAll(expr, "10s", "1m"),
      })),
    ),
  );

/** Returns an alert's expression without its threshold, `and` and `unless`, so that it always has a value. */
const unfiltered = (expr: string): string =>
  expr
    .replace(/^absent\((.*)\)$/, "$1")
    .replace(/\s(?:and|unless)\s.*$/s, "")
    .replaceAll(/\s(==|>=|<=|>|<)\s/g, " $1 bool ");

const RULES = scaleRules({ divisor: 20, maxSeconds: 10 });

const alerts = (): readonly Expression[] =>
  rulesFile
    .parse(parse(RULES))
    .groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => ({ name: alert, expr: unfiltered(expr) })));

/** Never spent. Without a budget, its panels have no data. */
const KEY = "a key of the traffic";
const UNITS_PER_DAY = 1_000_000_000;

test("a real Prometheus scrapes a forebay under traffic: data for every panel and alert; failures of node, Redis and feed fire alerts", {
  skip: !hasPrometheus && "no prometheus",
}, async (t) => {
  const redis = await startRedis(t);
  const dataDir = await mkdtemp(join(tmpdir(), "forebay-dashboard-"));
  t.after(() => rm(dataDir, { recursive: true }));
  const devnet = await createDevnet({ network: "optimism" });
  const { anvilUrl, feedUrl = "" } = devnet;
  const service = await createService(
    {
      nodes: [{ url: anvilUrl, unitsPerDay: UNITS_PER_DAY }],
      writes: "all",
      forks: "isthmus",
      pending: { feeds: [feedUrl] },
      quirks: { anvilDepositNonce: true },
    },
    {
      cache: { redis: redis.url, disk: "always" },
      access: {
        keys: [
          {
            name: "wallet",
            sha256: createHash("sha256").update(KEY).digest("hex"),
            limit: { unitsPerDay: UNITS_PER_DAY },
          },
        ],
      },
      server: { dataDir },
    },
  );
  const prometheus = await startPrometheus(new URL(service.opsUrl).host, RULES);
  t.after(async () => {
    await prometheus.close();
    await service.close();
    await devnet.close();
  });
  let reads = 0;
  const ask = (method: string, params: readonly unknown[]) => rpc(service.url, method, params, { "x-api-key": KEY });
  const traffic = async (): Promise<void> => {
    await ask("eth_getBlockByNumber", ["0x1", false]);
    // What holds for a final block is written to the data folder. No account is asked for twice.
    await ask("eth_getBalance", [`0x${(++reads).toString(16).padStart(40, "0")}`, "0x0"]);
    await ask("eth_getBalance", [`0x${"1".repeat(40)}`, "pending"]);
    await ask("eth_getLogs", [{ fromBlock: "0x1", toBlock: "latest" }]);
    // The node refuses it.
    await ask("eth_sendRawTransaction", ["0x02"]);
  };

  let missing = [...panels(), ...alerts()];
  await until(async () => {
    await traffic();
    const counts = await Promise.all(missing.map(({ expr }) => prometheus.query(expr)));
    missing = missing.filter((_, index) => counts[index]?.length === 0);
    return missing.length === 0;
  }, "every panel and alert").catch(() => assert.deepEqual(missing, []));

  const faults = ["ForebayNodeDown", "ForebayNoNode", "ForebayRedisDown", "ForebayFeedStale"];
  const early = await prometheus.firing();
  assert.deepEqual(
    faults.filter((alert) => early.has(alert)),
    [],
  );
  await Promise.all([redis.kill(), devnet.stopNode()]);
  devnet.faults.disconnect();
  let firing = early;
  await until(async () => {
    // Distinct requests, which are sent to Redis and then to the node.
    await rpc(service.url, "eth_getBlockByHash", [
      `0x${process.hrtime.bigint().toString(16).padStart(64, "0")}`,
      false,
    ]);
    firing = await prometheus.firing();
    return faults.every((alert) => firing.has(alert));
  }, "node, Redis and feed").catch(() => assert.deepEqual([...firing], faults));
});
