import assert from "node:assert/strict";
import { after, beforeEach, type TestContext, test } from "node:test";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startPaidService } from "../support/payments/paidService.ts";
import { call, chainId, post } from "../support/payments/payer.ts";
import { createService, type Service } from "../support/servers/service.ts";

const { service, node, facilitator, payer, token, payment, received, close } = await startPaidService();
after(close);

/** Starts a service that does not wait long for a facilitator that hangs. */
const startHasty = async (t: TestContext): Promise<Service> => {
  const whole = payment();
  const facilitator = { ...whole.facilitator, timeoutMs: 500, settleTimeoutMs: 1_000 };
  const hasty = await createService({ nodes: [{ url: node.url }] }, { access: { payment: { ...whole, facilitator } } });
  t.after(() => hasty.close());
  return hasty;
};

/** Sends a paid request until the facilitator has answered within the time of the service. */
const postPaid = async ({ url }: Service, headers: Readonly<Record<string, string>>): Promise<void> => {
  const isServed = async () => {
    const { status } = await post(url, chainId, headers);
    assert.ok(status === 200 || status === 503, `${status}`);
    return status === 200;
  };
  await until(isServed, "the paid request is served");
};

beforeEach(() => {
  for (const operation of ["verify", "settle", "supported"] as const) {
    facilitator.faults[operation] = undefined;
  }
});

test("while the facilitator is down, requests are answered with 503, and nothing is charged", async (t) => {
  const hasty = await startHasty(t);
  const headers = await payer.payFor(hasty.url, chainId);
  const asked = node.count("eth_chainId");
  const paid = await received(async () => {
    for (const fault of ["error", "hang"] as const) {
      facilitator.faults.verify = fault;
      const answer = await post(hasty.url, chainId, headers);
      assert.deepEqual([answer.status, answer.headers.get("retry-after"), answer.body.id], [503, "5", 1]);
      assert.match(answer.body.error?.message ?? "", /the facilitator does not answer, and nothing was charged$/);
    }
    assert.equal(node.count("eth_chainId"), asked);
    assert.equal((await post(hasty.url, call("net_version"))).status, 200);
    facilitator.faults.verify = undefined;
    await postPaid(hasty, headers);
  });
  assert.equal(paid, 1_000n);
  assert.ok((await metric(hasty.opsUrl, "forebay_payments_total", 'result="unavailable"')) > 0);
  assert.ok((await metric(hasty.opsUrl, "forebay_facilitator_failures_total", 'operation="verify"')) > 0);
});

test("a settlement that fails is answered with 402, and not with the result", async () => {
  const rich = await token.balanceOf(payer.address);
  const headers = await payer.payFor(service.url, chainId);
  facilitator.beforeSettle = async () => {
    await token.setBalance(payer.address, 0n);
  };
  const answer = await post(service.url, chainId, headers);
  facilitator.beforeSettle = undefined;
  await token.setBalance(payer.address, rich);
  assert.equal(answer.status, 402);
  assert.match(answer.body.error?.message ?? "", /^the payment was not settled: /);
  assert.equal(payer.receiptOf(answer).success, false);
  assert.equal((await payer.send(service.url, chainId)).status, 200);
});

test("without the facilitator's answer to a settlement, there is no result, and the payment is not settled again", async (t) => {
  const hasty = await startHasty(t);
  for (const fault of ["hang", "lost"] as const) {
    const headers = await payer.payFor(hasty.url, chainId);
    facilitator.faults.settle = fault;
    const paid = await received(async () => {
      const answer = await post(hasty.url, chainId, headers);
      assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "5"]);
      assert.equal(answer.headers.has("payment-required"), false);
      assert.match(answer.body.error?.message ?? "", /^the facilitator did not confirm the payment/);
      facilitator.faults.settle = undefined;
      const settled = facilitator.counts.settle;
      const again = await post(hasty.url, chainId, headers);
      assert.equal(again.body.error?.message, "the payment was already used");
      assert.equal(facilitator.counts.settle, settled);
    });
    assert.equal(paid, fault === "lost" ? 1_000n : 0n);
  }
  assert.ok((await metric(hasty.opsUrl, "forebay_payments_total", 'result="unknown"')) > 0);
});

/** Sends a request whose client disconnects when the node has it. Then the node answers. Resolves when the request has ended. */
const leave = async (body: { readonly method: string }, headers: Readonly<Record<string, string>>): Promise<void> => {
  node.faults.answer = "hang";
  node.faults.methods = [body.method];
  const leaving = new AbortController();
  const asked = node.asked(body.method);
  const left = fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: leaving.signal,
  }).catch(() => undefined);
  await asked;
  leaving.abort();
  await left;
  await until(async () => (await metric(service.opsUrl, "forebay_requests_in_flight")) === 0, "the request has ended");
  node.faults.answer = undefined;
  node.faults.methods = undefined;
  node.release();
};

test("a client that leaves before the settlement is not charged", async () => {
  const slow = call("eth_gasPrice");
  const headers = await payer.payFor(service.url, slow);
  assert.equal(await received(() => leave(slow, headers)), 0n);
});

test("a transaction that a node accepted is charged, also if its client has left", async () => {
  const send = call("eth_sendRawTransaction", ["0x02"]);
  const headers = await payer.payFor(service.url, send);
  const counted = () => metric(service.opsUrl, "forebay_payments_total", 'result="paid"');
  const before = await counted();
  const paid = await received(async () => {
    await leave(send, headers);
    await until(async () => (await counted()) === before + 1, "the payment is settled");
  });
  assert.equal(paid, 1_000n);
  assert.equal((await post(service.url, send, headers)).body.error?.message, "the payment was already used");
});

test("a write that is paid for is the only call of its request, so that no other call withholds its price", async () => {
  const sent = node.count("eth_sendRawTransaction");
  const send = call("eth_sendRawTransaction", ["0x02"]);
  for (const other of ["debug_setHead", "eth_chainId", "net_version", "eth_sendRawTransactionSync"]) {
    const { status, body } = await post(service.url, [send, call(other, [], 2)]);
    const message = "Invalid request: a write that is paid for must be the only call of its request";
    assert.deepEqual([status, body.error?.code, body.error?.message], [400, -32600, message]);
  }
  const bundles = [call("eth_sendBundle"), call("eth_blockNumber", [], 2)];
  assert.equal((await post(service.url, bundles)).status, 400);
  assert.equal(node.count("eth_sendRawTransaction"), sent);
  const { status, items } = await payer.send(service.url, [send]);
  assert.deepEqual([status, items.length], [200, 1]);
});

test("results are counted, and the configuration page has no secret of the facilitator", async () => {
  // The tests above cause the other results.
  assert.equal((await post(service.url, chainId, { "payment-signature": "!" })).status, 402);
  const value = (result: string) => metric(service.opsUrl, "forebay_payments_total", `result="${result}"`);
  for (const result of ["paid", "unpaid", "invalid", "replayed", "unsettled"]) {
    assert.ok((await value(result)) > 0, result);
  }
  const tokens = await metric(service.opsUrl, "forebay_payment_tokens_total");
  assert.ok(Math.abs(tokens - (await value("paid")) * 0.001) < 0.0101, `${tokens}`);
  assert.ok((await metric(service.opsUrl, "forebay_facilitator_seconds_count", 'operation="settle"')) > 0);
  const config = await (await fetch(`${service.opsUrl}/config`)).text();
  assert.ok(config.includes('"payTo"') && !config.includes("f-secret") && !config.includes("/facilitator"));
});
