import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";

const KEY = "a-key-that-nobody-knows";
const sha256 = createHash("sha256").update(KEY).digest("hex");
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("keys, method lists and limits apply to a running service, and the node gets no key", async (t) => {
  const node = await createFakeNode();
  const service = await createService(
    { name: "main", nodes: [{ url: node.url }] },
    {
      access: {
        keys: [{ name: "mine", sha256, deny: ["eth_sendRawTransaction"], limit: { calls: 5, seconds: 60 } }],
      },
    },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const { status, headers, body } = await rpc(service.url, "eth_blockNumber");
  assert.deepEqual([status, body.error?.code], [401, -32001]);
  assert.equal(headers.get("www-authenticate"), "Bearer");
  const url = `${service.url}/main/${KEY}`;
  assert.equal((await rpc(url, "eth_blockNumber")).status, 200);
  const denied = await rpc(url, "eth_sendRawTransaction", ["0x00"]);
  assert.deepEqual([denied.status, denied.body.error?.code], [200, -32601]);
  assert.equal(node.count("eth_sendRawTransaction"), 0);
  // The denied call counts too.
  for (let at = 0; at < 3; at++) {
    assert.equal((await rpc(url, "web3_clientVersion")).status, 200);
  }
  const limited = await rpc(url, "eth_blockNumber");
  assert.deepEqual([limited.status, limited.body.error?.code], [429, -32005]);
  assert.ok(Number(limited.headers.get("retry-after")) > 0);
  assert.ok(!node.requests.some((request) => JSON.stringify(request).includes(KEY)));
  for (const reason of ["key", "method", "rate"]) {
    assert.equal(await metric(service.opsUrl, "forebay_access_refused_total", `reason="${reason}"`), 1, reason);
  }
  assert.equal(await metric(service.opsUrl, "forebay_requests_total", 'outcome="limited"'), 1);
});

test("a key is refused after its time, and on a chain that it may not use", async (t) => {
  const node = await createFakeNode();
  const chains = ["main", "other"].map((name) => ({ name, nodes: [{ url: node.url }] }));
  const old = createHash("sha256").update(`old ${KEY}`).digest("hex");
  const keys = [
    { name: "mine", sha256, chains: ["main"] },
    { name: "old", sha256: old, expires: "2020-01-01T00:00:00Z" },
  ];
  const service = await createService(chains, { access: { keys } });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const answer = async (chain: string, key: string) => {
    const { status, body } = await rpc(`${service.url}/${chain}`, "eth_blockNumber", [], { "x-api-key": key });
    return [status, body.error?.message];
  };
  assert.deepEqual(await answer("main", KEY), [200, undefined]);
  assert.deepEqual(await answer("other", KEY), [403, "the API key may not use the chain other"]);
  assert.deepEqual(await answer("main", `old ${KEY}`), [401, "the API key has expired"]);
});

test("limits in Redis apply to all replicas, and to none while Redis is down", async (t) => {
  const redis = await startRedis(t);
  const node = await createFakeNode();
  const replicas = await Promise.all(
    [1, 2].map(() =>
      createService(
        { nodes: [{ url: node.url }] },
        {
          cache: { redis: redis.url, redisTimeoutMs: 1_000 },
          access: { limitPerAddress: { calls: 4, seconds: 600 }, limitStore: "redis", trustedProxies: ["127.0.0.1"] },
        },
      ),
    ),
  );
  t.after(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
    await node.close();
  });
  const [one, other] = replicas;
  assert.ok(one && other);
  const failures = async () => {
    const counts = await Promise.all(
      [one, other].map(({ opsUrl }) => metric(opsUrl, "forebay_limiter_failures_total")),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };
  const ask = async (url: string, address: string): Promise<number> => {
    const headers = { "content-type": "application/json", "x-forwarded-for": address };
    const response = await fetch(url, {
      method: "POST",
      headers,
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}',
    });
    await response.arrayBuffer();
    return response.status;
  };
  for (const { url } of [one, other]) {
    await until(async () => {
      const before = await failures();
      await ask(url, "203.0.113.9");
      return (await failures()) === before;
    }, "its calls are counted in Redis");
  }
  const statuses: number[] = [];
  for (const { url } of [one, other, one, other, one, other]) {
    statuses.push(await ask(url, "203.0.113.1"));
  }
  assert.deepEqual(statuses.toSorted(), [200, 200, 200, 200, 429, 429]);
  await redis.kill();
  for (let at = 0; at < 8; at++) {
    assert.equal(await ask(one.url, "203.0.113.2"), 200);
  }
  assert.ok((await failures()) > 0);
});

test("the client's trace context is forwarded to the node", async (t) => {
  const node = await createFakeNode();
  const service = await createService({ nodes: [{ url: node.url }] });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const ask = async (traceparent: string, address: string) => {
    const response = await fetch(service.url, {
      method: "POST",
      headers: { "content-type": "application/json", traceparent, "x-request-id": "mine-1" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBalance", params: [address, "0x1"] }),
    });
    await response.arrayBuffer();
    assert.equal(response.headers.get("x-request-id"), "mine-1");
    return node.requests.findLast(({ body }) => body.includes(address))?.headers.traceparent;
  };
  assert.equal(await ask(TRACEPARENT, `0x${"1".repeat(40)}`), TRACEPARENT);
  assert.equal(await ask("not a trace", `0x${"2".repeat(40)}`), undefined);
});
