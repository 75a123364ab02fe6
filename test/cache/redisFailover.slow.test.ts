import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { startCluster, startSentinels } from "../support/servers/redis.ts";

const TIMEOUT_MS = 50;
/** The possible delay of a timer on a loaded machine. */
const SLACK_MS = 250;
const BODY = new TextEncoder().encode('"0x1"');
/** Keys of many slots. */
const KEYS = Array.from({ length: 60 }, (_, index) => `forebay1:1:00:byHash:{"key":${index}}`);

const open = (t: TestContext, url: string): RedisStore => {
  const redis = new RedisStore({ url, timeoutMs: TIMEOUT_MS, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => redis.close());
  return redis;
};

/** Reads every key, writes missing values, and returns the number of hits. No read may fail or take long. */
const round = async (redis: RedisStore): Promise<number> => {
  const startMs = performance.now();
  const found = await Promise.all(KEYS.map((key) => redis.get(key)));
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs < TIMEOUT_MS + SLACK_MS, `${tookMs} ms`);
  found.forEach((entry, index) => {
    if (entry === undefined) {
      redis.set(KEYS[index] ?? "", { body: BODY, isFinal: true, storedAtMs: 0 }, 60);
    }
  });
  return found.filter((entry) => entry !== undefined).length;
};

const allHit = (redis: RedisStore, what: string): Promise<void> =>
  until(async () => (await round(redis)) === KEYS.length, what);

test("with Sentinel, hits return from the new master after the old one is killed under load", async (t) => {
  const { url, master, replica } = await startSentinels(t);
  const redis = open(t, url);
  await allHit(redis, "the first master answers");
  await master.kill();
  await until(async () => {
    await round(redis);
    return (await replica.admin.info("replication")).includes("role:master");
  }, "the replica is promoted");
  await allHit(redis, "the new master answers");
});

test("with Cluster, no command spans slots, and hits return after a master is killed under load", async (t) => {
  const { url, masters, replica } = await startCluster(t);
  const redis = open(t, url);
  await allHit(redis, "the cluster answers");
  for (const { admin } of masters) {
    assert.doesNotMatch(await admin.info("commandstats"), /cmdstat_mget/);
  }
  await masters[0]?.kill();
  await until(async () => {
    await round(redis);
    return (await replica.admin.info("replication")).includes("role:master");
  }, "the replica is promoted");
  await allHit(redis, "all slots answer again");
});
