import assert from "node:assert/strict";
import { test } from "node:test";
import { createLocalReservations, createSharedReservations } from "../../../src/access/payment/reservations.ts";
import { RedisStore } from "../../../src/cache/redisStore.ts";
import type { RunScript } from "../../../src/core/sharedValues.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { until } from "../../support/clients/until.ts";
import { startRedis } from "../../support/servers/redis.ts";

const request = { id: "a", digest: "one", seconds: 10 };

test("a reservation ends when it is released, or with the payment", async () => {
  let nowMs = 0;
  const reservations = createLocalReservations(() => nowMs);
  const first = await reservations.reserve(request);
  assert.equal(first?.state, "new");
  assert.equal(await reservations.reserve(request), undefined);
  assert.equal((await reservations.reserve({ ...request, id: "b" }))?.state, "new");
  await first?.release();
  assert.equal((await reservations.reserve(request))?.state, "new");
  nowMs = 9_999;
  assert.equal(await reservations.reserve(request), undefined);
  nowMs = 10_000;
  assert.equal((await reservations.reserve(request))?.state, "new");
});

test("after a settlement without an outcome, only the same request has the payment again, until it is settled", async () => {
  const reservations = createLocalReservations(() => 0);
  await (await reservations.reserve(request))?.suspend();
  assert.equal(await reservations.reserve({ ...request, digest: "two" }), undefined);
  const again = await reservations.reserve(request);
  assert.equal(again?.state, "repeated");
  assert.equal(await reservations.reserve(request), undefined);
  // The payment may be settled, so that no release makes it new.
  await again?.release();
  assert.equal(await reservations.reserve({ ...request, digest: "two" }), undefined);
  assert.equal((await reservations.reserve(request))?.state, "repeated");
});

test("a reservation whose reply is lost leaves the payment as it was before", async (t) => {
  const { url } = await startRedis(t);
  const redis = new RedisStore({ url, timeoutMs: 1_000, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => redis.close());
  const calls: Promise<unknown>[] = [];
  let losesReply = false;
  const run: RunScript = (lua, key, args) => {
    const reply = redis.run(lua, key, args);
    calls.push(reply);
    if (!losesReply) {
      return reply;
    }
    losesReply = false;
    return reply.then(() => Promise.reject(new Error("the reply is lost")));
  };
  const reservations = createSharedReservations(run);
  await until(() => redis.run("return 1", "a", []).then(Boolean, () => false), "Redis is connected");
  const reserveWithoutReply = async () => {
    losesReply = true;
    await assert.rejects(reservations.reserve(request), /the reply is lost/);
    await Promise.all(calls);
  };
  await reserveWithoutReply();
  const first = await reservations.reserve(request);
  assert.equal(first?.state, "new");
  await first?.suspend();
  await reserveWithoutReply();
  assert.equal(await reservations.reserve({ ...request, digest: "two" }), undefined);
  assert.equal((await reservations.reserve(request))?.state, "repeated");
});
