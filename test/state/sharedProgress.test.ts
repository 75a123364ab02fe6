import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GiverEvidence } from "../../src/state/giverEvidence.ts";
import { SharedProgress } from "../../src/state/sharedProgress.ts";
import { hashOf } from "../support/builders/heads.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { startRedis } from "../support/servers/redis.ts";

const NODES = [
  { name: "a", origin: "one" },
  { name: "b", origin: "two" },
];

/** Creates replicas that exchange their progress when the test says so. */
const createRig = async (t: TestContext) => {
  const { admin } = await startRedis(t);
  const redis = { isUp: true };
  const start = (repeatedUnits: number, nodes = NODES) => {
    const evidence = new GiverEvidence({ blocks: 1, values: 3 });
    const replica = { others: { repeatedUnits: Number.NaN, repeatedReads: Number.NaN } };
    const progress = new SharedProgress({
      nodes,
      runScript: async (lua, key, args) => {
        if (!redis.isUp) {
          throw new Error("Redis is down");
        }
        return admin.eval(lua, 1, key, ...args);
      },
      cost: {
        recent: { repeatedUnits, repeatedReads: 1, blocks: 1 },
        countOthers: (others) => {
          replica.others = others;
        },
      },
      trust: { evidenceOf: (name) => (name === "a" ? evidence : new GiverEvidence({ blocks: 1, values: 3 })) },
    });
    t.after(() => progress.close());
    return { replica, evidence, exchange: () => progress.exchange() };
  };
  return { admin, redis, start };
};

test("each replica knows what the reads of the others repeat, and all end a probation together", async (t) => {
  const { start, redis } = await createRig(t);
  const replicas = [start(10.5), start(200), start(3_000, NODES.toReversed())];
  const foreign = start(50_000, [{ name: "a", origin: "other" }]);
  for (const [index, { evidence }] of [...replicas, foreign].entries()) {
    const key = { field: "balance", address: addressOf(index), slot: undefined } as const;
    evidence.recordAgreement(key, { number: 1n, hash: hashOf(1) });
  }
  for (const { exchange } of [...replicas, foreign, ...replicas]) {
    await exchange();
  }
  assert.deepEqual(
    [...replicas, foreign].map(({ replica }) => replica.others),
    [
      { repeatedUnits: 3_200, repeatedReads: 2 },
      { repeatedUnits: 3_010.5, repeatedReads: 2 },
      { repeatedUnits: 210.5, repeatedReads: 2 },
      { repeatedUnits: 0, repeatedReads: 0 },
    ],
  );
  assert.deepEqual(
    [...replicas, foreign].map(({ evidence }) => evidence.isTrusted),
    [true, true, true, false],
  );
  redis.isUp = false;
  await replicas[0]?.exchange();
  assert.deepEqual(replicas[0]?.replica.others, { repeatedUnits: 0, repeatedReads: 0 });
});

test("a replica that has ended does not count, and neither does another value", async (t) => {
  const { start, admin } = await createRig(t);
  const [one, other] = [start(10), start(200)];
  await one.exchange();
  const [key = ""] = await admin.keys("progress*");
  const [seconds = "0"] = await admin.time();
  const ended = JSON.stringify({ repeatedUnits: 70, repeatedReads: 1, probations: {} });
  await admin.hset(key, { ended: `${Number(seconds) - 60}:${ended}`, broken: "x", foreign: `${seconds}:{"a":1}` });
  await other.exchange();
  assert.deepEqual(other.replica.others, { repeatedUnits: 10, repeatedReads: 1 });
  assert.deepEqual(
    (await admin.hkeys(key)).filter((field) => ["ended", "broken"].includes(field)),
    [],
  );
  assert.ok((await admin.ttl(key)) > 0);
});
