import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { SharedRepeats } from "../../src/state/sharedRepeats.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

const NODES = [
  { name: "a", origin: "one" },
  { name: "b", origin: "two" },
];

/** Creates replicas that exchange what their reads repeat, when the test says so. */
const createRig = async (t: TestContext) => {
  const { admin } = await startRedis(t);
  const redis = { isUp: true };
  const start = (repeatedUnits: number, nodes = NODES) => {
    const replica = { others: Number.NaN };
    const repeats = new SharedRepeats({
      nodes,
      runScript: async (lua, key, args) => {
        if (!redis.isUp) {
          throw new Error("Redis is down");
        }
        return admin.eval(lua, 1, key, ...args);
      },
      cost: {
        recent: { repeatedUnits, repeatedReads: 1, blocks: 1 },
        countOthers: (units) => {
          replica.others = units;
        },
      },
    });
    t.after(() => repeats.close());
    return { replica, exchange: () => repeats.exchange() };
  };
  return { admin, redis, start };
};

test("each replica knows what the reads of the others repeat", async (t) => {
  const { start, redis } = await createRig(t);
  const replicas = [start(10.4), start(200), start(3_000, NODES.toReversed())];
  const foreign = start(50_000, [{ name: "a", origin: "other" }]);
  for (const { exchange } of [...replicas, foreign, ...replicas]) {
    await exchange();
  }
  assert.deepEqual(
    [...replicas, foreign].map(({ replica }) => replica.others),
    [3_200, 3_010, 210, 0],
  );
  redis.isUp = false;
  await replicas[0]?.exchange();
  assert.equal(replicas[0]?.replica.others, 0);
});

test("a replica that has ended does not count, and neither does another value", async (t) => {
  const { start, admin } = await createRig(t);
  const [one, other] = [start(10), start(200)];
  await one.exchange();
  const [key = ""] = await admin.keys("repeats*");
  const [seconds = "0"] = await admin.time();
  await admin.hset(key, { ended: `${Number(seconds) - 60}:70`, broken: "x" });
  await other.exchange();
  assert.equal(other.replica.others, 10);
  assert.equal(await admin.hlen(key), 2);
  await until(async () => (await admin.ttl(key)) > 0, "the key ends with the replicas");
});
