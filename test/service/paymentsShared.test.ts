import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { PAY_TO } from "../support/payments/paidService.ts";
import { call, chainId, Payer, post } from "../support/payments/payer.ts";
import { type StandInFacilitator, startFacilitator } from "../support/payments/standInFacilitator.ts";
import { deployToken, NETWORK, type Token } from "../support/payments/token.ts";
import { startCommand } from "../support/servers/command.ts";
import { type RedisServer, startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";

const payer = new Payer();
const cleanups: (() => unknown)[] = [];
let anvil: Anvil;
let token: Token;
let facilitator: StandInFacilitator;
let node: FakeNode;
let redis: RedisServer;

before(async () => {
  anvil = await startAnvil([]);
  [token, facilitator, node, redis] = await Promise.all([
    deployToken(anvil, payer.address, 1_000_000_000n),
    startFacilitator(anvil.url),
    createFakeNode(),
    startRedis({ after: (end) => cleanups.push(end) }),
  ]);
});
after(async () => {
  for (const end of cleanups.toReversed()) {
    await end();
  }
  await facilitator?.close();
  await node?.close();
  await anvil?.close();
});

/** Starts forebay as its command does. */
const start = async (t: TestContext) => {
  const replica = await startCommand(t, {
    chains: [{ name: "op", nodes: [{ url: node.url }] }],
    cache: { redis: redis.url },
    access: {
      payment: {
        payTo: PAY_TO,
        network: NETWORK,
        asset: token.asset,
        price: { default: "0.001" },
        facilitator: { url: facilitator.url },
      },
    },
  });
  await untilRedisIsUsed(replica);
  return replica;
};

test("the same payment sent to two replicas at once is accepted once", async (t) => {
  const replicas = await Promise.all([start(t), start(t)]);
  const [first] = replicas;
  assert.ok(first);
  for (let round = 0; round < 5; round++) {
    const balance = await token.balanceOf(PAY_TO);
    const headers = await payer.payFor(first.url, chainId);
    const answers = await Promise.all(replicas.map(({ url }) => post(url, chainId, headers)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 402]);
    const refused = answers.find(({ status }) => status === 402);
    assert.equal(refused?.body.error?.message, "the payment was already used");
    assert.equal((await token.balanceOf(PAY_TO)) - balance, 1_000n);
  }
});

test("a process that ends between serving and settling charges nothing, and its reservation expires with the payment", async (t) => {
  const [first, second] = await Promise.all([start(t), start(t)]);
  const balance = await token.balanceOf(PAY_TO);
  const body = call("eth_gasPrice");
  const headers = await payer.payFor(first.url, body);
  await redis.admin.flushall();
  node.faults.answer = "hang";
  node.faults.methods = ["eth_gasPrice"];
  const asked = node.asked("eth_gasPrice");
  const broken = post(first.url, body, headers).catch(() => undefined);
  await asked;
  first.signal("SIGKILL");
  await first.ended;
  await broken;
  node.faults.answer = undefined;
  node.release();
  assert.equal((await post(second.url, body, headers)).body.error?.message, "the payment was already used");
  const [key] = await redis.admin.keys("forebay:payment*");
  assert.ok(key);
  const seconds = await redis.admin.ttl(key);
  assert.ok(seconds > 120 && seconds <= 180, `${seconds}`);
  assert.equal(await token.balanceOf(PAY_TO), balance);
});

test("while Redis is down, paid requests are answered with 503, and nothing is charged", async (t) => {
  const { url } = await start(t);
  const balance = await token.balanceOf(PAY_TO);
  const headers = await payer.payFor(url, chainId);
  const settled = facilitator.counts.settle;
  await redis.kill();
  const answer = await post(url, chainId, headers);
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "5"]);
  assert.match(answer.body.error?.message ?? "", /the store of payments does not answer, and nothing was charged$/);
  assert.deepEqual([facilitator.counts.settle, await token.balanceOf(PAY_TO)], [settled, balance]);
  await redis.start();
  await until(async () => (await post(url, chainId, headers)).status === 200, "the payment is accepted");
  assert.equal((await token.balanceOf(PAY_TO)) - balance, 1_000n);
});

test("a payment that Redis did not answer in time can be sent again when Redis works", async (t) => {
  const { url } = await start(t);
  await payer.send(url, chainId);
  const headers = await payer.payFor(url, chainId);
  const reserved = (await redis.admin.keys("forebay:payment*")).length;
  redis.signal("SIGSTOP");
  const answer = await post(url, chainId, headers).finally(() => redis.signal("SIGCONT"));
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "5"]);
  assert.match(answer.body.error?.message ?? "", /the store of payments does not answer, and nothing was charged$/);
  const isReserved = async () => (await redis.admin.keys("forebay:payment*")).length > reserved;
  await until(isReserved, "Redis has run the script that was sent before it hung");
  const balance = await token.balanceOf(PAY_TO);
  await until(async () => (await post(url, chainId, headers)).status === 200, "the payment is accepted");
  assert.equal((await token.balanceOf(PAY_TO)) - balance, 1_000n);
});
