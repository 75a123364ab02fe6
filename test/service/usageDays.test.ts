import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startRedis } from "../support/servers/redis.ts";
import {
  askUsage as ask,
  callWithKey as call,
  createReplicas,
  createUsageFolder,
  readTotal,
  untilCalls,
} from "../support/servers/usageReplicas.ts";

describe("the usage of days", { concurrency: 3 }, () => {
  test("with Redis, the days have the sums of two replicas, also after a restart", async (t) => {
    const [{ start, startAsCommand }, redis] = await Promise.all([createReplicas(t), startRedis(t)]);
    const cache = { redis: redis.url };
    const one = await startAsCommand({ cache });
    const other = await start({ cache });
    await Promise.all([call(one, "wallet", 30), call(other, "wallet", 12), call(other, "indexer", 5)]);
    await untilCalls(one, "redis", [42, 5]);
    await untilCalls(other, "redis", [42, 5]);

    // The last usage is written when the process ends.
    await call(one, "indexer", 3);
    one.signal("SIGTERM");
    assert.equal(await one.ended, 0);
    const again = await start({ cache });
    await untilCalls(again, "redis", [42, 8]);
    await call(again, "wallet", 1);
    await untilCalls(other, "redis", [43, 8]);
    assert.equal(await readTotal(again), 1);
    for (const key of await redis.admin.keys("forebay:usage*")) {
      assert.ok((await redis.admin.ttl(key)) > 34 * 86_400);
    }
  });

  test("what is counted while Redis is lost is written when it is back, and counts once", async (t) => {
    const [{ start }, redis] = await Promise.all([createReplicas(t), startRedis(t)]);
    const cache = { redis: redis.url };
    const one = await start({ cache });
    await call(one, "wallet", 10);
    await untilCalls(one, "redis", [10, 0]);
    redis.signal("SIGSTOP");
    await call(one, "wallet", 7);
    // The command is sent, and runs when the server goes on, although nobody waits for its reply any more.
    const lost = await ask(one, "?days=1");
    assert.equal(lost.status, 503);
    assert.match(await lost.text(), /cannot be read now/);
    assert.equal((await ask(one, "")).status, 200);
    redis.signal("SIGCONT");
    await untilCalls(one, "redis", [17, 0]);
    await call(one, "indexer", 4);
    await one.close();
    await untilCalls(await start({ cache }), "redis", [17, 4]);
  });

  test("with a data folder, the days survive a restart and a kill, and count once", async (t) => {
    const { start, startAsCommand } = await createReplicas(t);
    const dataDir = await createUsageFolder(t);
    const one = await start({ dataDir });
    await call(one, "wallet", 10);
    // A second process has no folder yet. What it counts waits in its memory.
    const other = await startAsCommand({ dataDir });
    await call(other, "wallet", 5);
    assert.equal((await ask(other, "?days=1")).status, 503);
    await call(one, "indexer", 2);
    await one.close();
    await untilCalls(other, "folder", [15, 2]);
    other.signal("SIGKILL");
    await other.ended;
    const last = await start({ dataDir });
    await untilCalls(last, "folder", [15, 2]);
  });

  test("without Redis and data folder, the days are those since the start, and a wrong number of days is an error", async (t) => {
    const { start } = await createReplicas(t);
    const one = await start({});
    await call(one, "wallet", 3);
    await untilCalls(one, "memory", [3, 0]);
    for (const days of ["0", "36", "-1", "1.5", "all", ""]) {
      const response = await ask(one, `?days=${days}`);
      assert.deepEqual([response.status, await response.text()], [400, "days must be an integer from 1 to 35\n"]);
    }
    assert.doesNotMatch(await (await ask(one, "")).text(), /"days/);
  });
});
