import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { ROWS } from "../../grafana/rows.ts";
import { createDevnet } from "../devnet/devnet.ts";
import { startPrometheus } from "../grafana/prometheusServer.ts";
import { startRedis } from "../support/redis.ts";
import { rpc } from "../support/rpc.ts";
import { createService } from "../support/service.ts";
import { until } from "../support/until.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;

/** As Grafana fills them in when everything is selected. */
const filledIn = (expr: string): string =>
  expr.replaceAll("$__rate_interval", "10s").replaceAll(/\$(chain|instance|node)\b/g, ".*");

test("a real Prometheus that scrapes a forebay with a feed, under a little traffic, has data for every panel", {
  skip: !hasPrometheus && "no prometheus",
}, async (t) => {
  const redis = await startRedis(t);
  const devnet = await createDevnet({ network: "optimism" });
  const { anvilUrl, feedUrl = "" } = devnet;
  const service = await createService(
    {
      nodes: [{ url: anvilUrl }],
      forks: "isthmus",
      pending: { feeds: [feedUrl] },
      quirks: { anvilDepositNonce: true },
    },
    { cache: { redis: redis.url } },
  );
  const prometheus = await startPrometheus(new URL(service.opsUrl).host);
  t.after(async () => {
    await prometheus.close();
    await service.close();
    await devnet.close();
  });
  const traffic = async (): Promise<void> => {
    await rpc(service.url, "eth_getBlockByNumber", ["0x1", false]);
    await rpc(service.url, "eth_getBalance", [`0x${"1".repeat(40)}`, "pending"]);
    await rpc(service.url, "eth_getLogs", [{ fromBlock: "0x1", toBlock: "latest" }]);
  };
  const missing = async (): Promise<readonly string[]> => {
    const queries = ROWS.flatMap(({ title: row, panels }) =>
      panels.flatMap(({ title, queries: list }) => list.map(({ expr }) => ({ row, title, expr }))),
    );
    const counts = await Promise.all(queries.map(({ expr }) => prometheus.count(filledIn(expr))));
    return queries.flatMap(({ row, title, expr }, index) =>
      counts[index] === 0 ? [`${row} / ${title}: ${expr}`] : [],
    );
  };
  let last: readonly string[] = [];
  await until(async () => {
    await traffic();
    last = await missing();
    return last.length === 0;
  }, "every panel").catch(() => assert.deepEqual(last, []));
});
