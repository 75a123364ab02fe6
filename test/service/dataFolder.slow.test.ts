import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { askAll } from "../support/clients/askAll.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startCommand } from "../support/servers/command.ts";
import { compared, createDataFolder, FINAL_CALLS, lateReads, PROBES } from "../support/servers/dataFolder.ts";

const KILLS = 8;
/** What a killed process may lose. */
const LOST_MS = 2_000;

test("kill -9 loses entries of at most two seconds", async (t) => {
  const { folder, node, asked } = await createDataFolder(t);
  const truth = new Map<string, string | undefined>();
  for (let kill = 0; kill < KILLS; kill++) {
    const forebay = await startCommand(t, {
      chains: [{ name: "chain", nodes: [{ url: node.url, name: "own" }], pending: { mode: "node" } }],
      server: { dataDir: folder },
      log: { level: "info" },
    });
    await until(async () => (await metric(forebay.opsUrl, "forebay_disk_up")) === 1, "the folder is open");
    if (kill > 0) {
      await compared(forebay);
      const [calls, lateBefore] = [asked(), await lateReads(forebay)];
      const answers = await askAll(forebay.url, FINAL_CALLS);
      for (const { call, result } of answers) {
        assert.equal(result, truth.get(JSON.stringify(call)), JSON.stringify(call));
      }
      const late = (await lateReads(forebay)) - lateBefore;
      assert.ok(asked() - calls <= late, `${asked() - calls} calls after kill ${kill}, ${late} late`);
    }
    const more = Array.from({ length: 8 }, (_, index) => ({
      method: "eth_getBlockReceipts",
      params: [`0x${(4 + kill + index).toString(16)}`],
    }));
    for (const { call, result } of await askAll(forebay.url, [...FINAL_CALLS, ...more])) {
      assert.ok(result !== undefined);
      truth.set(JSON.stringify(call), result);
    }
    if (kill === 0) {
      await askAll(forebay.url, PROBES);
      await wait(LOST_MS);
    }
    process.kill(forebay.pid, "SIGKILL");
    await forebay.ended;
  }
});
