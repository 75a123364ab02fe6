import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { test } from "node:test";
import { createRedisStore } from "../../src/cache/redisStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

test("a reply to MGET that is no list is a miss", async (t) => {
  const redis = await startRedis(t);
  let spoilt = 0;
  const server = createServer((client) => {
    const upstream = connect(redis.port, "127.0.0.1");
    let isRead = false;
    client.on("data", (chunk: Buffer) => {
      isRead = chunk.toString("latin1").toLowerCase().includes("mget");
      upstream.write(chunk);
    });
    upstream.on("data", (chunk: Buffer) => {
      spoilt += isRead ? 1 : 0;
      client.write(isRead ? "*-1\r\n" : chunk);
    });
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy()).on("close", () => upstream.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const url = `redis://127.0.0.1:${address.port}`;
  const store = createRedisStore({ url, timeoutMs: 1_000, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => {
    store.close();
    server.close();
  });
  await until(async () => {
    assert.equal(await store.get("key"), undefined);
    return spoilt > 0;
  }, "a reply was spoilt");
});
