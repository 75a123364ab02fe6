import assert from "node:assert/strict";
import { test } from "node:test";
import { localReservations, sharedReservations } from "../../../src/access/payment/reservations.ts";
import { RedisStore } from "../../../src/cache/redisStore.ts";
import type { RunScript } from "../../../src/core/sharedValues.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { until } from "../../support/clients/until.ts";
import { startRedis } from "../../support/servers/redis.ts";

const payment = { id: "a", seconds: 10 };

test("a reservation ends when it is released, or with the payment", async () => {
  let nowMs = 0;
  const reservations = localReservations(() => nowMs);
  const first = await reservations.reserve(payment, "one");
  assert.equal(first?.state, "new");
  assert.equal(await reservations.reserve(payment, "one"), undefined);
  assert.equal((await reservations.reserve({ ...payment, id: "b" }, "one"))?.state, "new");
  await first?.release();
  assert.equal((await reservations.reserve(payment, "one"))?.state, "new");
  nowMs = 9_999;
  assert.equal(await reservations.reserve(payment, "one"), undefined);
  nowMs = 10_000;
  assert.equal((await reservations.reserve(payment, "one"))?.state, "new");
});

test("after a settlement without an outcome, only the same request has the payment again, until it is settled", async () => {
  const reservations = localReservations(() => 0);
  await (await reservations.reserve(payment, "one"))?.suspend();
  assert.equal(await reservations.reserve(payment, "two"), undefined);
  const again = await reservations.reserve(payment, "one");
  assert.equal(again?.state, "repeated");
  assert.equal(await reservations.reserve(payment, "one"), undefined);
  // The payment may be settled, so that no release makes it new.
  await again?.release();
  assert.equal(await reservations.reserve(payment, "two"), undefined);
  assert.equal((await reservations.reserve(payment, "one"))?.state, "repeated");
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
  const reservations = sharedReservations(run);
  await until(() => redis.run("return 1", "a", []).then(Boolean, () => false), "Redis is connected");
  const reserveWithoutReply = async () => {
    losesReply = true;
    await assert.rejects(reservations.reserve(payment, "one"), /the reply is lost/);
    await Promise.all(calls);
  };
  await reserveWithoutReply();
  const first = await reservations.reserve(payment, "one");
  assert.equal(first?.state, "new");
  await first?.suspend();
  await reserveWithoutReply();
  assert.equal(await reservations.reserve(payment, "two"), undefined);
  assert.equal((await reservations.reserve(payment, "one"))?.state, "repeated");
});
