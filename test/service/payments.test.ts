import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import type { PaymentRequirements } from "@x402/core/types";
import { metric } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { PAY_TO, startPaidService } from "../support/payments/paidService.ts";
import { call, chainId, post } from "../support/payments/payer.ts";
import { NETWORK } from "../support/payments/token.ts";
import { createService, type Service } from "../support/servers/service.ts";

const { service, node, facilitator, payer, token, payment, received, close } = await startPaidService();
after(close);

test("an unpaid request is answered with 402 and the price of exactly this request", async () => {
  const asked = node.count("eth_gasPrice");
  const answer = await post(service.url, call("eth_gasPrice", [], "a-1"));
  assert.equal(answer.status, 402);
  assert.equal(answer.headers.get("cache-control"), "no-store");
  assert.equal(answer.body.id, "a-1");
  assert.deepEqual([answer.body.error?.code, answer.body.error?.message], [402, "payment required"]);
  const challenge = payer.challengeOf(answer);
  assert.deepEqual(answer.body.error?.data, challenge);
  assert.equal(challenge.x402Version, 2);
  assert.equal(challenge.resource.url, `${service.url}/`);
  const terms: PaymentRequirements = {
    scheme: "exact",
    network: NETWORK,
    asset: token.asset.address,
    amount: "1000",
    payTo: PAY_TO,
    maxTimeoutSeconds: 120,
    extra: { name: "USD Coin", version: "2" },
  };
  assert.deepEqual(challenge.accepts, [terms]);
  assert.equal(node.count("eth_gasPrice"), asked);
});

test("a paid request is answered, and its amount reaches the recipient once", async () => {
  const paid = await received(async () => {
    const answer = await payer.send(service.url, chainId);
    assert.deepEqual([answer.status, answer.body.result], [200, "0x7a69"]);
    const receipt = payer.receiptOf(answer);
    assert.deepEqual([receipt.success, receipt.network, receipt.payer], [true, NETWORK, payer.address]);
    assert.match(receipt.transaction, /^0x[0-9a-f]{64}$/);
  });
  assert.equal(paid, 1_000n);
  assert.equal(facilitator.headers().authorization, "Bearer f-secret");
});

test("a method has its own price, and a free method needs no payment", async () => {
  const logs = call("eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x2" }]);
  assert.equal(payer.termsOf(await post(service.url, logs)).amount, "10000");
  assert.equal((await post(service.url, call("net_version"))).status, 200);
});

test("a price by unit follows the price table, and is rounded up once", async (t) => {
  const own = await createService(
    { nodes: [{ url: node.url }] },
    {
      access: { payment: payment({ perUnit: "0.00000004", methods: { eth_gasPrice: "0.5" } }) },
      usage: { prices: "alchemy", units: { eth_getLogs: 75 } },
    },
  );
  t.after(() => own.close());
  const amountOf = async (body: unknown) => payer.termsOf(await post(own.url, body)).amount;
  // 26 units of 0.04 millionths are 1.04 millionths.
  assert.equal(await amountOf(call("eth_call")), "2");
  assert.equal(await amountOf([call("eth_call"), call("eth_call", [], 2)]), "3");
  assert.equal(await amountOf(call("eth_getLogs")), "3");
  assert.equal(await amountOf(call("eth_gasPrice")), "500000");
  assert.equal((await post(own.url, chainId)).status, 200);
});

test("a batch costs the sum of its calls", async () => {
  const batch = [chainId, call("eth_blockNumber", [], 2), call("net_version", [], 3)];
  const paid = await received(async () => {
    const { status, items } = await payer.send(service.url, batch);
    assert.deepEqual([status, items.map(({ id }) => id)], [200, [1, 2, 3]]);
  });
  assert.equal(paid, 2_000n);
});

/** Starts a service whose node is broken for one method. */
const failing = async (t: TestContext, method: string): Promise<Service> => {
  const broken = await createFakeNode();
  t.after(() => broken.close());
  const own = await createService({ nodes: [{ url: broken.url }] }, { access: { payment: payment() } });
  t.after(() => own.close());
  broken.faults.error = { code: -32603, message: "internal error" };
  broken.faults.methods = [method];
  return own;
};

test("a batch with a call that fails by our fault is neither answered nor charged", async (t) => {
  const broken = await failing(t, "eth_gasPrice");
  const batch = [chainId, call("eth_gasPrice", [], 2)];
  const paid = await received(async () => {
    const headers = await payer.payFor(broken.url, batch);
    const { body, items } = await post(broken.url, batch, headers);
    assert.match(body.error?.message ?? "", /^a call of the batch failed, and nothing was charged: /);
    assert.equal(items.length, 0);
    // The payment is not used.
    assert.equal((await post(broken.url, [chainId, call("eth_blockNumber", [], 2)], headers)).status, 200);
  });
  assert.equal(paid, 2_000n);
});

test("an error of ours is not charged, and the payment can be used again", async (t) => {
  const broken = await failing(t, "eth_gasPrice");
  const paid = await received(async () => {
    const headers = await payer.payFor(broken.url, call("eth_gasPrice"));
    const { body } = await post(broken.url, call("eth_gasPrice"), headers);
    assert.equal(body.error?.code, -32603);
    assert.equal((await post(broken.url, chainId, headers)).status, 200);
  });
  assert.equal(paid, 1_000n);
  assert.equal(await metric(broken.opsUrl, "forebay_payments_total", 'result="failed"'), 1);
});

test("an error that the client caused costs the price of the call", async () => {
  const paid = await received(async () => {
    const answer = await payer.send(service.url, call("eth_getBalance", ["no address", "latest"]));
    assert.deepEqual([answer.status, answer.body.error?.code], [200, -32602]);
  });
  assert.equal(paid, 1_000n);
});

test("a body that does not parse costs nothing, and a notification cannot be paid for", async () => {
  assert.deepEqual((await post(service.url, [])).body.error?.code, -32600);
  const { status, body } = await post(service.url, { jsonrpc: "2.0", method: "eth_chainId" });
  assert.deepEqual([status, body.error?.message], [400, "Invalid request: a call that is paid for needs an id"]);
});

test("a reload changes prices, and a used payment is not accepted after it", async (t) => {
  const own = await createService({ nodes: [{ url: node.url }] }, { access: { payment: payment() } });
  t.after(() => own.close());
  const headers = await payer.payFor(own.url, chainId);
  assert.equal((await post(own.url, chainId, headers)).status, 200);
  await own.reload({ access: { payment: payment({ default: "0.002" }) } });
  assert.equal(payer.termsOf(await post(own.url, chainId)).amount, "2000");
  await own.reload({ access: { payment: payment() } });
  assert.equal((await post(own.url, chainId, headers)).body.error?.message, "the payment was already used");
  await own.reload({ access: {} });
  assert.equal((await post(own.url, chainId)).status, 200);
});
