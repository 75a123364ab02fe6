import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { CacheEntry } from "../../src/cache/cacheEntry.ts";
import { isValueLease, LeasedValues, type ValueLease } from "../../src/cache/leasedValues.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

const KEY = "writes";
const LONG_MS = 60_000;

const entryOf = (text: string): CacheEntry => ({
  body: Buffer.from(text),
  isFinal: false,
  storedAtMs: 1,
  block: { number: 7n, hash: `0x${"ab".repeat(32)}` },
  source: { node: "a", origin: "one" },
});

const createRig = async (t: TestContext) => {
  const { admin } = await startRedis(t);
  const values = new LeasedValues((lua, key, args) => admin.eval(lua, 1, key, ...args));
  const take = async (leaseMs = LONG_MS): Promise<ValueLease> => {
    const taken = await values.take(KEY, leaseMs);
    assert.ok(taken !== "held" && isValueLease(taken));
    return taken;
  };
  const textNow = async (): Promise<string> => {
    const taken = await values.take(KEY, LONG_MS);
    assert.ok(taken !== "held" && !isValueLease(taken));
    return Buffer.from(taken.body).toString();
  };
  return { admin, values, take, textNow };
};

test("one replica has the lease, and the others get its value, with its block and node", async (t) => {
  const { values, take } = await createRig(t);
  const lease = await take();
  assert.equal(await values.take(KEY, LONG_MS), "held");
  await lease.store(entryOf("value"), 60);
  const taken = await values.take(KEY, LONG_MS);
  assert.ok(taken !== "held" && !isValueLease(taken));
  assert.deepEqual(
    [Buffer.from(taken.body).toString(), taken.block, taken.source],
    ["value", entryOf("").block, entryOf("").source],
  );
});

test("a lease that has expired stores nothing, whether another replica has taken it or stored a value", async (t) => {
  const { admin, take, textNow } = await createRig(t);
  const late = await take(1);
  await until(async () => (await admin.exists(KEY)) === 0, "the lease expires");
  await late.store(entryOf("late"), 60);
  const lease = await take();
  await late.store(entryOf("late"), 60);
  await lease.store(entryOf("value"), 60);
  await late.store(entryOf("late"), 60);
  assert.equal(await textNow(), "value");
});

test("a release ends only the own lease", async (t) => {
  const { admin, values, take } = await createRig(t);
  const late = await take(1);
  await until(async () => (await admin.exists(KEY)) === 0, "the lease expires");
  const lease = await take();
  await late.release();
  assert.equal(await values.take(KEY, LONG_MS), "held");
  await lease.release();
  await take();
});

test("if the reply to a take is lost, its lease is released", async (t) => {
  const { admin } = await startRedis(t);
  let failures = 1;
  const values = new LeasedValues(async (lua, key, args) => {
    const reply = await admin.eval(lua, 1, key, ...args);
    if (failures-- > 0) {
      throw new Error("the connection ended");
    }
    return reply;
  });
  await assert.rejects(values.take(KEY, LONG_MS), /the connection ended/);
  await until(async () => (await admin.exists(KEY)) === 0, "the lease is released");
});
