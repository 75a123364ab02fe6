import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { RateLimits } from "../../src/access/rateLimits.ts";
import { createRedisClient, parseRedisUrl } from "../../src/cache/redisClient.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { type RedisServer, startRedis } from "../support/servers/redis.ts";

const LIMIT = { calls: 3, seconds: 60 };

const takeAll = async (limits: RateLimits, id: string, calls: number): Promise<readonly (RpcError | undefined)[]> =>
  Promise.all(
    Array.from({ length: calls }, () =>
      limits.take("address", id, LIMIT).then(
        () => undefined,
        (error: unknown) => {
          assert.ok(error instanceof RpcError);
          return error;
        },
      ),
    ),
  );

const failuresOf = async ({ metrics }: ReturnType<typeof createTelemetry>): Promise<number> =>
  (await metrics.limiterFailures.get()).values[0]?.value ?? 0;

/** Connects a client to Redis. */
const connect = async (t: TestContext, redis: RedisServer) => {
  const client = createRedisClient(parseRedisUrl(redis.url));
  client.on("error", () => {});
  t.after(() => client.disconnect());
  await until(() => client.status === "ready", "connected");
  return client;
};

test("a Redis that hangs delays calls up to its deadline and limits no client", async (t) => {
  const redis = await startRedis(t);
  const client = await connect(t, redis);
  const telemetry = createTelemetry({ level: "silent" });
  const limits = new RateLimits({ redis: { client, timeoutMs: 50 }, telemetry });
  redis.signal("SIGSTOP");
  t.after(() => redis.signal("SIGCONT"));
  assert.deepEqual(await takeAll(limits, "a", 5), Array(5).fill(undefined));
  // From the second call on, the store is not used for a while.
  assert.deepEqual(await takeAll(limits, "a", 5), Array(5).fill(undefined));
  assert.equal(await failuresOf(telemetry), 10);
});

test("one late reply of Redis is counted, and only a Redis that goes on failing is logged, without a stack", async (t) => {
  const redis = await startRedis(t);
  const client = await connect(t, redis);
  const telemetry = createTelemetry({ level: "silent" });
  const lines: { readonly msg: string; readonly reason?: string }[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (text: string) => lines.push(JSON.parse(text)) });
  const limits = new RateLimits({ redis: { client, timeoutMs: 50 }, telemetry: { ...telemetry, log } });
  const takes = async (failures: number): Promise<void> => {
    const before = await failuresOf(telemetry);
    assert.deepEqual(await takeAll(limits, "a", 2), [undefined, undefined]);
    assert.equal(await failuresOf(telemetry), before + failures);
  };
  const untilApplied = () =>
    until(async () => {
      const before = await failuresOf(telemetry);
      await limits.take("key", "b", { calls: 1_000, seconds: 60 });
      return (await failuresOf(telemetry)) === before;
    }, "limits are applied");

  redis.signal("SIGSTOP");
  t.after(() => redis.signal("SIGCONT"));
  await takes(2);
  redis.signal("SIGCONT");
  await untilApplied();
  assert.equal(lines.length, 0);

  redis.signal("SIGSTOP");
  await takes(2);
  await until(async () => {
    await limits.take("key", "b", { calls: 1_000, seconds: 60 });
    return lines.length > 0;
  }, "the failure is logged");
  redis.signal("SIGCONT");
  await untilApplied();
  // The connection may be closed by then, which is another reason.
  const withReason = lines.map((line) => ({ ...line, ...(line.reason && { reason: typeof line.reason }) }));
  assert.deepEqual(withReason, [
    { level: 40, reason: "string", msg: "rate limits are not applied: their store failed" },
    { level: 30, msg: "rate limits are applied again" },
  ]);
});
