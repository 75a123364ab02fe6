import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { CacheEntry } from "../../src/cache/cacheEntry.ts";
import type { RedisTls } from "../../src/cache/redisClient.ts";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { until } from "../support/clients/until.ts";
import { startMovingName } from "../support/servers/movingName.ts";
import { startRedis } from "../support/servers/redis.ts";

const TIMEOUT_MS = 50;
/** For tests in which no read may time out on a loaded machine. */
const LONG_TIMEOUT_MS = 10_000;
/** A Redis that misses deadlines gets no command for this time. Then one of each kind is tried. */
const PAUSE_MS = 500;
/** Reads and writes until the first pause. */
const MAX_WAITS = 30;

const entryOf = (text: string, grade?: CacheEntry["grade"]): CacheEntry => ({
  body: Buffer.from(text),
  block: { number: 17n, hash: hashOf(17) },
  isFinal: true,
  storedAtMs: 1_700_000_000_123,
  ...(grade && { grade }),
});

interface OpenOptions {
  readonly tls?: RedisTls;
  readonly timeoutMs?: number;
}

const open = (t: TestContext, url: string, { tls, timeoutMs = TIMEOUT_MS }: OpenOptions = {}) => {
  const telemetry = createTelemetry({ level: "silent" });
  const redis = new RedisStore({ url, timeoutMs, telemetry, ...(tls && { tls }) });
  t.after(() => redis.close());
  const errors = async (): Promise<Record<string, number>> => {
    const { values } = await telemetry.metrics.redisErrors.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.reason, value]));
  };
  return { redis, telemetry, errors };
};

const textOf = (entry: CacheEntry | undefined): string | undefined => entry && Buffer.from(entry.body).toString();

/** Writes a value until it can be read. */
const writeUntilRead = (redis: ReturnType<typeof open>["redis"], key: string, text = "1"): Promise<void> =>
  until(async () => {
    if (textOf(await redis.get(key)) === text) {
      return true;
    }
    redis.set(key, entryOf(text), 60);
    return false;
  }, `${key} is stored`);

test("a stored entry is read with body, block, finality, time and grade, small or large", async (t) => {
  const server = await startRedis(t);
  const { redis } = open(t, server.url, { timeoutMs: LONG_TIMEOUT_MS });
  for (const text of ["{}", `"${"ab".repeat(50_000)}"`]) {
    await writeUntilRead(redis, "key", text);
    const entry = await redis.get("key");
    assert.deepEqual({ ...entry, body: textOf(entry) }, { ...entryOf(text), body: text });
  }
  for (const grade of ["proven", "checked"] as const) {
    redis.set(grade, entryOf("{}", grade), 60);
    await until(async () => (await redis.get(grade))?.grade === grade, `${grade} is stored`);
  }
  assert.ok((await server.admin.strlen("key")) < 2_000, "a large value is compressed");
  assert.equal(await redis.get("other"), undefined);
  assert.ok((await server.admin.ttl("key")) > 50);
});

test("a deleted entry is a miss", async (t) => {
  const server = await startRedis(t);
  const { redis } = open(t, server.url, { timeoutMs: LONG_TIMEOUT_MS });
  await writeUntilRead(redis, "key");
  redis.delete("key");
  await until(async () => (await redis.get("key")) === undefined, "the entry is deleted");
  assert.equal(await server.admin.exists("key"), 0);
});

test("a store connects over TLS with a password", async (t) => {
  const server = await startRedis(t, { password: "p@ss:/word", tls: true });
  const tls = { ca: server.ca ?? "" };
  const { redis, errors } = open(t, server.url, { tls });
  await writeUntilRead(redis, "key");
  const stranger = open(t, server.url.replace(/:[^:@]+@/, ":wrong@"), { tls });
  assert.equal(await stranger.redis.get("key"), undefined);
  assert.equal((await errors()).corrupt, undefined);
});

test("many keys of one tick are one command, without duplicates", async (t) => {
  const server = await startRedis(t);
  const { redis } = open(t, server.url, { timeoutMs: LONG_TIMEOUT_MS });
  await writeUntilRead(redis, "key5");
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

test("an invalid value, another type, and another key's value are misses", async (t) => {
  const server = await startRedis(t);
  const { redis, errors } = open(t, server.url, { timeoutMs: LONG_TIMEOUT_MS });
  await writeUntilRead(redis, "key", `"${"ab".repeat(5_000)}"`);
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
  await writeUntilRead(redis, "key");
});

test("a killed Redis causes misses at once, and is used again after its restart", async (t) => {
  const server = await startRedis(t);
  const { redis, errors, telemetry } = open(t, server.url);
  const warnings = t.mock.method(telemetry.log, "warn");
  const infos = t.mock.method(telemetry.log, "info");
  await writeUntilRead(redis, "key");
  await server.kill();
  await until(async () => {
    await redis.get("key");
    return ((await errors()).disconnected ?? 0) > 20;
  }, "misses are counted");
  assert.equal((await telemetry.metrics.redisUp.get()).values[0]?.value, 0);
  await server.start();
  await writeUntilRead(redis, "key");
  assert.equal((await telemetry.metrics.redisUp.get()).values[0]?.value, 1);
  const [line, ...others] = warnings.mock.calls.map(({ arguments: [fields] }) => fields);
  assert.deepEqual(line, {
    redis: new URL(server.url).host,
    use: "cache",
    reason: "ECONNREFUSED",
    hint: "nothing listens on this host and port",
  });
  assert.deepEqual(others, [], "the cause is logged once");
  assert.deepEqual(
    infos.mock.calls.map(({ arguments: [, text] }) => text),
    ["Redis is connected"],
  );
});

test("few reads wait for a paused Redis", async (t) => {
  const server = await startRedis(t);
  const { redis, errors } = open(t, server.url);
  await writeUntilRead(redis, "key");
  const { timeout: timeoutsBefore = 0 } = await errors();
  server.signal("SIGSTOP");
  t.after(() => server.signal("SIGCONT"));
  const startMs = performance.now();
  for (let round = 0; round < 1_000; round++) {
    redis.set(`written${round}`, entryOf("1"), 60);
    assert.equal(await redis.get(`key${round}`), undefined);
  }
  const pauses = Math.ceil((performance.now() - startMs) / PAUSE_MS);
  const waited = ((await errors()).timeout ?? 0) - timeoutsBefore;
  assert.ok(waited > 0 && waited <= MAX_WAITS + 2 * pauses, `${waited} waited for the deadline, in ${pauses} pauses`);
  server.signal("SIGCONT");
  await writeUntilRead(redis, "key");
});

test("the number of reads that wait for a paused Redis is limited", async (t) => {
  const server = await startRedis(t);
  const { redis, errors } = open(t, server.url);
  await writeUntilRead(redis, "key");
  const { timeout: timeoutsBefore = 0 } = await errors();
  server.signal("SIGSTOP");
  t.after(() => server.signal("SIGCONT"));
  const found = await Promise.all(Array.from({ length: 10_000 }, (_, index) => redis.get(`key${index}`)));
  assert.deepEqual(new Set(found), new Set([undefined]));
  for (let index = 0; index < 10_000; index++) {
    redis.set(`key${index}`, entryOf("1"), 60);
  }
  const { overloaded = 0, timeout = 0 } = await errors();
  assert.ok(overloaded >= 10_000 - 4_096, `${overloaded} were refused`);
  const waited = timeout - timeoutsBefore;
  // On a busy machine, a pause begins before all have been sent.
  assert.ok(waited > 0 && waited <= 4_096, `${waited} waited`);
});

test("a full Redis rejects writes, which are counted, answers reads, and accepts writes later", async (t) => {
  const server = await startRedis(t, { args: ["--maxmemory-policy", "noeviction"] });
  const { redis, errors } = open(t, server.url);
  await writeUntilRead(redis, "key");
  // An empty server may be below the limit.
  await server.admin.set("other", Buffer.alloc(2_000_000));
  await server.admin.config("SET", "maxmemory", "1mb");
  await until(async () => {
    redis.set("more", entryOf("2"), 60);
    return ((await errors()).full ?? 0) > 10;
  }, "writes are refused");
  assert.equal(textOf(await redis.get("key")), "1");
  await server.admin.config("SET", "maxmemory", "0");
  await writeUntilRead(redis, "more", "2");
});

test("a read-only replica answers reads, and its rejected writes are counted", async (t) => {
  const master = await startRedis(t, { args: ["--repl-diskless-sync-delay", "0"] });
  const replica = await startRedis(t, { args: ["--replicaof", "127.0.0.1", `${master.port}`] });
  const writer = open(t, master.url);
  const reader = open(t, replica.url);
  await writeUntilRead(writer.redis, "key");
  await until(async () => textOf(await reader.redis.get("key")) === "1", "the replica has the value");
  reader.redis.set("key", entryOf("2"), 60);
  await until(async () => (await reader.errors()).readonly === 1, "READONLY is counted");
  await until(async () => textOf(await reader.redis.get("key")) === "1", "it is connected again");
});

test("behind a name, the new master is found after a failover, and Redis is not up while writes fail", async (t) => {
  const args = ["--repl-diskless-sync-delay", "0"];
  const first = await startRedis(t, { args });
  const second = await startRedis(t, { args });
  // A name: its new connections go to the second one, and the open ones stay.
  const name = await startMovingName(t, first.port);
  const { redis, telemetry } = open(t, name.url);
  const isUp = async () => (await telemetry.metrics.redisUp.get()).values[0]?.value;
  const count = () => redis.run("return redis.call('INCR', KEYS[1])", "count", []);
  await writeUntilRead(redis, "key");
  assert.equal(await count(), 1);
  await first.admin.replicaof("127.0.0.1", second.port);
  await until(async () => {
    const error: unknown = await count().catch((err: unknown) => err);
    return error instanceof Error && (await isUp()) === 0;
  }, "Redis is not up while it rejects writes");
  name.move(second.port);
  await until(async () => Number(await count().catch(() => 0)) > 0, "the second one counts");
  await writeUntilRead(redis, "other");
  await until(async () => (await isUp()) === 1, "Redis is up again");
});

test("the error of an invalid URL does not contain its password", () => {
  const telemetry = createTelemetry({ level: "silent" });
  assert.throws(
    () => new RedisStore({ url: "redis://:secret@h1,h2", timeoutMs: TIMEOUT_MS, telemetry }),
    (err: Error) => !err.message.includes("secret"),
  );
});
