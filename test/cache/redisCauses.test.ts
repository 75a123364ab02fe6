import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { silent } from "../support/builders/silent.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

/** Opens a store that cannot connect. Returns the fields of the first line about it, and what was logged in all. */
const firstLine = async (t: TestContext, url: string) => {
  const telemetry = silent();
  const warn = t.mock.method(telemetry.log, "warn");
  const store = new RedisStore({ url, timeoutMs: 2_000, telemetry });
  t.after(() => store.close());
  const up = async () => (await telemetry.metrics.redisUp.get()).values[0]?.value;
  assert.equal(await up(), 0, "the metric has a sample from the start");
  await until(() => Promise.resolve(warn.mock.callCount() > 0), "a line is logged");
  const [fields] = warn.mock.calls[0]?.arguments ?? [];
  return fields;
};

const portOf = (url: string): string => new URL(url).port;

describe("the first line about a Redis that cannot be used has the reason", { concurrency: true }, () => {
  test("a server that requires a password", async (t) => {
    const { url } = await startRedis(t, { password: "secret" });
    const port = portOf(url);
    const line = await firstLine(t, `redis://127.0.0.1:${port}`);
    assert.deepEqual(line, {
      redis: `127.0.0.1:${port}`,
      use: "cache",
      reason: "NOAUTH",
      hint: "the server requires a password: redis://:PASSWORD@host",
    });
  });

  test("a wrong password, which no line contains", async (t) => {
    const { url } = await startRedis(t, { password: "secret" });
    const port = portOf(url);
    const line = await firstLine(t, `redis://:terces@127.0.0.1:${port}`);
    assert.deepEqual(line, {
      redis: `127.0.0.1:${port}`,
      use: "cache",
      reason: "WRONGPASS",
      hint: "the server rejects the user name or the password of the URL",
    });
  });

  test("a host name that does not resolve", async (t) => {
    const line = await firstLine(t, "redis://redis.invalid:6379");
    assert.match(JSON.stringify(line), /"redis":"redis.invalid:6379".*"reason":"(?:ENOTFOUND|EAI_AGAIN)"/);
    assert.match(JSON.stringify(line), /the host name does not resolve/);
  });

  test("TLS to a server without TLS, and no TLS to a server with TLS", async (t) => {
    const [plain, secured] = await Promise.all([startRedis(t), startRedis(t, { tls: true })]);
    const [tls, clear] = await Promise.all([
      firstLine(t, `rediss://127.0.0.1:${portOf(plain.url)}`),
      firstLine(t, `redis://127.0.0.1:${portOf(secured.url)}`),
    ]);
    assert.match(JSON.stringify(tls), /use redis:\/\/ if the server has no TLS/);
    assert.match(JSON.stringify(clear), /use rediss:\/\/ if it requires TLS/);
  });

  test("a certificate of an authority that is not trusted", async (t) => {
    const { url } = await startRedis(t, { tls: true });
    const line = await firstLine(t, `rediss://127.0.0.1:${portOf(url)}`);
    assert.match(JSON.stringify(line), /"reason":"DEPTH_ZERO_SELF_SIGNED_CERT".*NODE_EXTRA_CA_CERTS/);
  });

  test("a single server as a cluster", async (t) => {
    const { url } = await startRedis(t);
    const line = await firstLine(t, `redis+cluster://127.0.0.1:${portOf(url)}`);
    assert.match(JSON.stringify(line), /the server is not part of a cluster: use redis:/);
  });
});
