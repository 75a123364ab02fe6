import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { askAll } from "../support/clients/askAll.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startCommand } from "../support/servers/command.ts";
import { createDataFolder, FINAL_CALLS, written } from "../support/servers/dataFolder.ts";

const DRAIN_TIMEOUT_MS = 1_000;
/** The chart gives a process with a data folder 12 s after its requests. The machine may be busy. */
const MAX_MS = 40_000;
/** SQLite never ends the write of an entry. */
const HANG = `
  CREATE VIEW endless AS WITH RECURSIVE counts(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counts) SELECT count(*) AS n FROM counts;
  CREATE TRIGGER hang AFTER INSERT ON entries BEGIN SELECT n FROM endless; END;
`;

test("after SIGTERM the process ends in time, although SQLite hangs", async (t) => {
  const { folder, node, start } = await createDataFolder(t);
  const before = await start();
  await askAll(before.url, FINAL_CALLS);
  await written(before);
  await before.close();
  const database = new DatabaseSync(join(folder, "forebay.db"));
  database.exec(HANG);
  database.close();

  const forebay = await startCommand(t, {
    chains: [{ name: "chain", nodes: [{ url: node.url, name: "own" }], pending: { mode: "node" } }],
    server: { dataDir: folder, drainDelayMs: 0, drainTimeoutMs: DRAIN_TIMEOUT_MS },
    log: { level: "info" },
  });
  let number = 4;
  await until(async () => {
    await askAll(forebay.url, [{ method: "eth_getBlockReceipts", params: [`0x${(number++).toString(16)}`] }]);
    return (await metric(forebay.opsUrl, "forebay_disk_errors_total", 'reason="timeout"')) > 0;
  }, "SQLite hangs");
  forebay.signal("SIGTERM");
  const ended = await Promise.race([forebay.ended.then(() => "ended"), wait(MAX_MS, "still runs", { ref: false })]);
  assert.equal(ended, "ended");
});
