import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { CacheEntry } from "../../src/cache/cacheEntry.ts";
import type { RedisTls } from "../../src/cache/redisClient.ts";
import { createRedisStore } from "../../src/cache/redisStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

const TIMEOUT_MS = 50;
/** What a loaded machine may add to a timer. */
const SLACK_MS = 200;

const entryOf = (text: string): CacheEntry => ({
  body: Buffer.from(text),
  block: { number: 17n, hash: hashOf(17) },
  final: true,
  storedAtMs: 1_700_000_000_123,
});

const open = (t: TestContext, url: string, tls?: RedisTls) => {
  const telemetry = createTelemetry({ level: "silent" });
  const redis = createRedisStore({ url, timeoutMs: TIMEOUT_MS, telemetry, ...(tls && { tls }) });
  t.after(() => redis.close());
  const errors = async (): Promise<Record<string, number>> => {
    const { values } = await telemetry.metrics.redisErrors.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.reason, value]));
  };
  return { redis, telemetry, errors };
};

const textOf = (entry: CacheEntry | undefined): string | undefined => entry && Buffer.from(entry.body).toString();

/** Writes until the value can be read. */
const works = (redis: ReturnType<typeof open>["redis"], key: string, text = "1"): Promise<void> =>
  until(async () => {
    if (textOf(await redis.get(key)) === text) {
      return true;
    }
    redis.set(key, entryOf(text), 60);
    return false;
  }, `${key} is kept`);

test("what is set is got: body, block, finality and time, small and large", async (t) => {
  const server = await startRedis(t);
  const { redis } = open(t, server.url);
  for (const text of ["{}", `"${"ab".repeat(50_000)}"`]) {
    await works(redis, "key", text);
    const entry = await redis.get("key");
    assert.deepEqual({ ...entry, body: textOf(entry) }, { ...entryOf(text), body: text });
  }
  assert.ok((await server.admin.strlen("key")) < 2_000, "a large value is compressed");
  assert.equal(await redis.get("other"), undefined);
  assert.ok((await server.admin.ttl("key")) > 50);
});

test("over TLS with a password", async (t) => {
  const server = await startRedis(t, { password: "p@ss:/word", tls: true });
  const { redis, errors } = open(t, server.url, { ca: server.ca ?? "" });
  await works(redis, "key");
  const stranger = open(t, server.url.replace(/:[^:@]+@/, ":wrong@"), { ca: server.ca ?? "" });
  assert.equal(await stranger.redis.get("key"), undefined);
  assert.equal((await errors()).corrupt, undefined);
});

test("many keys in one turn are one command, and equal ones are asked once", async (t) => {
  const server = await startRedis(t);
  const { redis } = open(t, server.url);
  await works(redis, "key5");
  await server.admin.config("RESETSTAT");
  const keys = Array.from({ length: 100 }, (_, index) => `key${index % 50}`);
  const found = await Promise.all(keys.map((key) => redis.get(key)));
  assert.deepEqual(
    found.map(textOf),
    keys.map((key) => (key === "key5" ? "1" : undefined)),
  );
  const stats = await server.admin.info("commandstats");
  assert.match(stats, /cmdstat_mget:calls=1,/);
  assert.doesNotMatch(stats, /cmdstat_get:/);
});

test("noise, another type and another key's value under our key are misses", async (t) => {
  const server = await startRedis(t);
  const { redis, errors } = open(t, server.url);
  await works(redis, "key", `"${"ab".repeat(5_000)}"`);
  const value = (await server.admin.getBuffer("key")) ?? Buffer.alloc(0);

  const foreign = [Buffer.from("noise"), Buffer.alloc(0), value.subarray(0, -1), Buffer.alloc(100, 1)];
  for (let at = 0; at < value.length; at += 7) {
    const flipped = Buffer.from(value);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    foreign.push(flipped);
  }
  for (const bytes of foreign) {
    await server.admin.set("key", bytes);
    assert.equal(await redis.get("key"), undefined);
  }
  assert.equal((await errors()).corrupt, foreign.length);

  await server.admin.set("another", value);
  assert.equal(await redis.get("another"), undefined);
  await server.admin.del("key");
  await server.admin.lpush("key", "foreign");
  assert.equal(await redis.get("key"), undefined);
  await works(redis, "key");
});

test("killed: misses at once, and used again when it is back", async (t) => {
  const server = await startRedis(t);
  const { redis, errors, telemetry } = open(t, server.url);
  const warnings = t.mock.method(telemetry.log, "warn");
  const news = t.mock.method(telemetry.log, "info");
  await works(redis, "key");
  await server.kill();
  await until(async () => {
    await redis.get("key");
    return ((await errors()).disconnected ?? 0) > 20;
  }, "misses are counted");
  assert.equal((await telemetry.metrics.redisUp.get()).values[0]?.value, 0);
  await server.start();
  await works(redis, "key");
  assert.equal((await telemetry.metrics.redisUp.get()).values[0]?.value, 1);
  assert.equal(warnings.mock.callCount() <= 2, true, "once for get, once for set");
  assert.equal(news.mock.callCount(), warnings.mock.callCount());
});

test("paused: no look-up takes longer than the deadline, and few take so long", async (t) => {
  const server = await startRedis(t);
  const { redis, errors } = open(t, server.url);
  await works(redis, "key");
  server.signal("SIGSTOP");
  t.after(() => server.signal("SIGCONT"));
  let slow = 0;
  for (let round = 0; round < 1_000; round++) {
    const startMs = performance.now();
    redis.set(`written${round}`, entryOf("1"), 60);
    assert.equal(await redis.get(`key${round}`), undefined);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs < TIMEOUT_MS + SLACK_MS, `${tookMs} ms`);
    if (tookMs > TIMEOUT_MS / 2) {
      slow += 1;
    }
  }
  assert.ok(slow < 30, `${slow} look-ups waited for the deadline`);
  assert.ok(((await errors()).timeout ?? 0) > 0);
  server.signal("SIGCONT");
  await works(redis, "key");
});

test("paused: what waits is bounded", async (t) => {
  const server = await startRedis(t);
  const { redis, errors } = open(t, server.url);
  await works(redis, "key");
  server.signal("SIGSTOP");
  t.after(() => server.signal("SIGCONT"));
  const found = await Promise.all(Array.from({ length: 10_000 }, (_, index) => redis.get(`key${index}`)));
  assert.deepEqual(new Set(found), new Set([undefined]));
  for (let index = 0; index < 10_000; index++) {
    redis.set(`key${index}`, entryOf("1"), 60);
  }
  const { overloaded, timeout } = await errors();
  assert.deepEqual([(overloaded ?? 0) >= 10_000 - 4_096, timeout], [true, 4_096]);
});

test("full: writes fail and are counted, reads go on, and writes come back", async (t) => {
  const server = await startRedis(t, { args: ["--maxmemory-policy", "noeviction"] });
  const { redis, errors } = open(t, server.url);
  await works(redis, "key");
  // An empty server may be below the limit.
  await server.admin.set("other", Buffer.alloc(2_000_000));
  await server.admin.config("SET", "maxmemory", "1mb");
  await until(async () => {
    redis.set("more", entryOf("2"), 60);
    return ((await errors()).full ?? 0) > 10;
  }, "writes are refused");
  assert.equal(textOf(await redis.get("key")), "1");
  await server.admin.config("SET", "maxmemory", "0");
  await works(redis, "more", "2");
});

test("a read-only replica answers reads; its refusals are counted", async (t) => {
  const master = await startRedis(t, { args: ["--repl-diskless-sync-delay", "0"] });
  const replica = await startRedis(t, { args: ["--replicaof", "127.0.0.1", `${master.port}`] });
  const writer = open(t, master.url);
  const reader = open(t, replica.url);
  await works(writer.redis, "key");
  await until(async () => textOf(await reader.redis.get("key")) === "1", "the replica has it");
  reader.redis.set("key", entryOf("2"), 60);
  await until(async () => (await reader.errors()).readonly === 1, "READONLY is counted");
  assert.equal(textOf(await reader.redis.get("key")), "1");
});

test("a URL that cannot be right is refused without showing its password", () => {
  const telemetry = createTelemetry({ level: "silent" });
  assert.throws(
    () => createRedisStore({ url: "redis://:secret@h1,h2", timeoutMs: TIMEOUT_MS, telemetry }),
    (err: Error) => !err.message.includes("secret"),
  );
});
