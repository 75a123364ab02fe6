import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { metric } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";

type Rest = NonNullable<Parameters<typeof createService>[1]>;

const sha256 = (key: string): string => createHash("sha256").update(key).digest("hex");
const ONE = { name: "one", sha256: sha256("k1") };
const TWO = { name: "two", sha256: sha256("k2") };

const start = async (t: TestContext, rest: Rest, chain: Partial<ServiceChain> = {}) => {
  const node = await createFakeNode();
  const service = await createService({ name: "main", nodes: [{ url: node.url }], ...chain }, rest);
  t.after(async () => {
    await service.close();
    await node.close();
  });
  return service;
};

test("a reload closes the WebSockets of a revoked key, and applies its rules to the others", async (t) => {
  const service = await start(t, { access: { keys: [ONE, TWO] } });
  const [revoked, kept] = await Promise.all(["k1", "k2"].map((key) => connectSocket(`${service.url}/main/${key}`)));
  assert.ok(revoked && kept);
  assert.equal((await kept.call("eth_blockNumber")).error, undefined);
  await service.reload({ access: { keys: [{ ...TWO, deny: ["eth_blockNumber"] }] } });
  assert.deepEqual(await revoked.closed(), { code: 1008, reason: "the API key is not valid any more" });
  assert.equal((await kept.call("eth_blockNumber")).error?.message, "the method eth_blockNumber is not allowed here");
  assert.equal((await kept.call("eth_chainId")).error, undefined);
  await kept.close();
});

test("WebSockets without a key are closed once keys are configured, and those of a renamed key stay open", async (t) => {
  const service = await start(t, {});
  const open = await connectSocket(service.url);
  await service.reload({ access: { keys: [ONE] } });
  assert.equal((await open.closed()).code, 1008);
  const keyed = await connectSocket(`${service.url}/main/k1`);
  await service.reload({ access: { keys: [{ ...ONE, name: "renamed" }] } });
  assert.equal((await keyed.call("eth_chainId")).error, undefined);
  await keyed.close();
});

test("a reload closes the WebSockets of a key that may not use their chain any more", async (t) => {
  const node = await createFakeNode();
  const chains = ["main", "side"].map((name) => ({ name, nodes: [{ url: node.url }] }));
  const service = await createService(chains, { access: { keys: [ONE, TWO] } });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const open = (chain: string, key: string) => connectSocket(`${service.url}/${chain}/${key}`);
  const [refused, allowed, other] = await Promise.all([open("main", "k1"), open("side", "k1"), open("main", "k2")]);
  await service.reload({ access: { keys: [{ ...ONE, chains: ["side"] }, TWO] } });
  assert.deepEqual(await refused.closed(), { code: 1008, reason: "the API key may not use the chain main" });
  for (const socket of [allowed, other]) {
    assert.equal((await socket.call("eth_chainId")).error, undefined);
    await socket.close();
  }
});

test("a reload closes the WebSockets with subscriptions of a key that may not subscribe any more", async (t) => {
  const service = await start(t, { access: { keys: [ONE] } });
  const [subscribed, plain] = await Promise.all([1, 2].map(() => connectSocket(`${service.url}/main/k1`)));
  assert.ok(subscribed && plain);
  await subscribed.subscribe("newHeads");
  await service.reload({ access: { keys: [{ ...ONE, deny: ["eth_subscribe"] }] } });
  assert.deepEqual(await subscribed.closed(), { code: 1008, reason: "the method eth_subscribe is not allowed here" });
  assert.equal((await plain.call("eth_chainId")).error, undefined);
  await plain.close();
});

test("a reload closes the WebSockets with subscriptions of a key that now requires proven answers", async (t) => {
  const node = await createFakeNode();
  const nodes = ["a", "b"].map((provider) => ({ url: node.url, name: provider, provider }));
  const service = await createService({ name: "main", nodes }, { access: { keys: [ONE] } });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const open = (headers = {}) => connectSocket(`${service.url}/main/k1`, headers);
  const [subscribed, plain, proven] = await Promise.all([open(), open(), open({ "x-forebay-require": "proven" })]);
  await subscribed.subscribe("newHeads");
  await proven.subscribe("newHeads");
  await service.reload({ access: { keys: [{ ...ONE, require: "proven" }] } });
  assert.deepEqual(await subscribed.closed(), {
    code: 1008,
    reason: "the API key requires proven answers, and has a subscription without proofs",
  });
  assert.match((await plain.call("eth_subscribe", "syncing")).error?.message ?? "", /^not proven/);
  assert.equal((await proven.call("eth_chainId")).error, undefined);
  await plain.subscribe("newHeads");
  await service.reload({ access: { keys: [{ ...ONE, require: "proven", deny: ["eth_gasPrice"] }] } });
  for (const socket of [plain, proven]) {
    assert.equal((await socket.call("eth_chainId")).error, undefined);
    await socket.close();
  }
});

test("a reload closes the WebSockets with subscriptions of a key that now has confirmations", async (t) => {
  const service = await start(t, { access: { keys: [ONE] } });
  const [subscribed, plain] = await Promise.all([1, 2].map(() => connectSocket(`${service.url}/main/k1`)));
  assert.ok(subscribed && plain);
  await subscribed.subscribe("newHeads");
  await service.reload({ access: { keys: [{ ...ONE, confirmations: 2 }] } });
  assert.deepEqual(await subscribed.closed(), {
    code: 1008,
    reason: "the API key has confirmations, and has a subscription, which follows the head",
  });
  assert.equal((await plain.call("eth_chainId")).error, undefined);
  await plain.close();
});

test("WebSockets of one client address are limited, and a closed one is not counted", async (t) => {
  const service = await start(t, {
    server: { maxWebSocketsPerAddress: 2 },
    access: { trustedProxies: ["127.0.0.1"] },
  });
  const open = async (client: string) => {
    const socket = new WebSocket(service.url.replace("http", "ws"), { headers: { "x-forwarded-for": client } });
    const [error] = await Promise.race([once(socket, "open").then(() => [undefined]), once(socket, "error")]);
    return { socket, error: error === undefined ? undefined : String(error) };
  };
  const [first] = [await open("203.0.113.1"), await open("203.0.113.1")];
  assert.match((await open("203.0.113.1")).error ?? "", /429/);
  assert.equal((await open("203.0.113.2")).error, undefined);
  // One /64.
  assert.equal((await open("2001:db8::1")).error, undefined);
  assert.equal((await open("2001:db8::2")).error, undefined);
  assert.match((await open("2001:db8::ffff:3")).error ?? "", /429/);
  assert.equal(await metric(service.opsUrl, "forebay_access_refused_total", 'reason="webSockets"'), 2);
  first.socket.close();
  await once(first.socket, "close");
  await until(async () => (await open("203.0.113.1")).error === undefined, "the closed one is not counted");
});
