import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { until } from "../support/clients/until.ts";
import {
  askUsage,
  callWithKey,
  createReplicas,
  createUsageFolder,
  untilCalls,
} from "../support/servers/usageReplicas.ts";

const KILLS = 4;
/** What a killed process may lose. */
const LOST_MS = 2_000;
const CALLS = 25;

test("kill -9 loses usage of at most two seconds", async (t) => {
  const { startTwo } = await createReplicas(t);
  const dataDir = await createUsageFolder(t);
  for (let kill = 0; kill <= KILLS; kill++) {
    const forebay = await startTwo({ dataDir });
    await until(async () => (await askUsage(forebay, "?days=1")).status === 200, "the folder is open");
    await untilCalls(forebay, "folder", [kill * CALLS, 0]);
    await callWithKey(forebay, "wallet", CALLS);
    await wait(LOST_MS);
    process.kill(forebay.pid, "SIGKILL");
    await forebay.ended;
  }
});
