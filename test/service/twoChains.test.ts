import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ZERO_ADDRESS } from "../../src/ethereum/hex.ts";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";
import { createService, type Service } from "../support/servers/service.ts";

let main: Devnet;
let trial: Devnet;
let service: Service;

before(async () => {
  [main, trial] = await Promise.all([
    createDevnet({ chainId: 901, manual: true }),
    createDevnet({ chainId: 902, manual: true, gasLimit: 30_000_000n }),
  ]);
  await main.sealNow();
  await main.sealNow();
  await trial.sealNow();
  service = await createService([
    { name: "main", nodes: [{ url: main.anvilUrl }] },
    { name: "trial", nodes: [{ url: trial.anvilUrl }] },
  ]);
});
after(async () => {
  await service?.close();
  await Promise.all([main?.close(), trial?.close()]);
});

test("each chain answers at its name and at its chain id, and nothing at /", async () => {
  for (const [path, chainId, head] of [
    ["main", 901, 2],
    ["901", 901, 2],
    ["trial", 902, 1],
    ["902", 902, 1],
  ] as const) {
    assert.equal(Number((await rpc(`${service.url}/${path}`, "eth_chainId")).body.result), chainId);
    assert.equal(Number((await rpc(`${service.url}/${path}`, "eth_blockNumber")).body.result), head);
  }
  for (const path of ["/", "/unknown"]) {
    const { status, headers } = await fetch(service.url + path, { method: "POST", body: "{}" });
    assert.deepEqual([status, headers.get("allow")], [404, null]);
  }
  assert.equal((await fetch(service.url, { method: "PUT", body: "{}" })).headers.get("allow"), "GET, HEAD, OPTIONS");
});

test("the same request to both chains has two responses, also from the cache", async () => {
  for (let round = 0; round < 2; round++) {
    const [one, other] = await Promise.all(
      [main, trial].map(async (devnet, index) => {
        const path = index === 0 ? "main" : "trial";
        const ours = await rpc(`${service.url}/${path}`, "eth_getBlockByNumber", ["0x1", false]);
        assert.deepEqual(ours.body.result, await devnet.rpc("eth_getBlockByNumber", "0x1", false));
        return ours.text;
      }),
    );
    assert.notEqual(one, other);
  }
});

test("metrics name the chain", async () => {
  const before = await metric(service.opsUrl, "forebay_requests_total", 'chain="trial"');
  await rpc(`${service.url}/main`, "eth_blockNumber");
  assert.equal(await metric(service.opsUrl, "forebay_requests_total", 'chain="trial"'), before);
  assert.ok((await metric(service.opsUrl, "forebay_requests_total", 'chain="main"')) > 0);
});

test("while one chain's node is down, the other chain is served", async () => {
  await trial.stopNode();
  await main.sealNow();
  assert.deepEqual(
    (await rpc(`${service.url}/main`, "eth_getBlockByNumber", ["0x3", false])).body.result,
    await main.rpc("eth_getBlockByNumber", "0x3", false),
  );
  const down = await rpc(`${service.url}/trial`, "eth_getBalance", [`0x${"00".repeat(20)}`, "0x0"]);
  assert.equal(down.status, 503);
  await trial.startNode();
});

test("a chain and its fork, with one chain id and one genesis, do not get each other's values", async (t) => {
  const chain = createFakeChain({ height: 100 });
  const nodes = await Promise.all(
    ["0x1", "0x2"].map((balance) => createFakeNode({ chain, handlers: { eth_getBalance: () => balance } })),
  );
  const redis = await startRedis(t);
  const start = () =>
    createService(
      nodes.map(({ url }, index) => ({ name: index === 0 ? "origin" : "fork", nodes: [{ url, provider: "own" }] })),
      { cache: { redis: redis.url, redisTimeoutMs: 5_000 } },
    );
  const replicas = [await start(), await start()];
  t.after(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
    await Promise.all(nodes.map((node) => node.close()));
  });
  for (const replica of replicas) {
    const { url, chains } = replica;
    await untilRedisIsUsed(replica);
    await until(() => chains.every(({ upstreams }) => upstreams.heads.current()?.finalized !== undefined), "heads");
    const balances: unknown[] = [];
    for (const path of ["origin", "fork"]) {
      balances.push((await rpc(`${url}/${path}`, "eth_getBalance", [ZERO_ADDRESS, "0x10"])).body.result);
    }
    assert.deepEqual(balances, ["0x1", "0x2"]);
  }
});

test("of two chains with one chain id the first has the path of the id, and both have their names", async (t) => {
  const nodes = await Promise.all([5, 7].map((height) => createFakeNode({ chain: createFakeChain({ height }) })));
  const twins = await createService(nodes.map(({ url }, index) => ({ name: `twin${index}`, nodes: [{ url }] })));
  t.after(async () => {
    await twins.close();
    await Promise.all(nodes.map((node) => node.close()));
  });
  const heads = await Promise.all(
    ["31337", "twin0", "twin1"].map(async (path) => (await rpc(`${twins.url}/${path}`, "eth_blockNumber")).body.result),
  );
  assert.deepEqual(heads, ["0x5", "0x5", "0x7"]);
});
