import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { once } from "node:events";
import { after, before, beforeEach, type TestContext, test } from "node:test";
import type { PaymentRequirements } from "@x402/core/types";
import { WebSocket } from "ws";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { call, Payer, post } from "../support/payments/payer.ts";
import { type StandInFacilitator, startFacilitator } from "../support/payments/standInFacilitator.ts";
import { deployToken, NETWORK, type Token } from "../support/payments/token.ts";
import { createService, type Service } from "../support/servers/service.ts";

const PAY_TO = "0x00000000000000000000000000000000000000aa";
const OTHER = "0x00000000000000000000000000000000000000bb";
const KEY = { name: "free", sha256: hash("sha256", "k-free") };

const payer = new Payer();
let anvil: Anvil;
let token: Token;
let facilitator: StandInFacilitator;
let node: FakeNode;
let service: Service;

const payment = (price: object = { default: "0.001", methods: { eth_getLogs: "0.01", net_version: "0" } }) => ({
  payTo: PAY_TO,
  network: NETWORK,
  asset: token.asset,
  price,
  facilitator: {
    url: facilitator.url,
    headers: { authorization: "Bearer f-secret" },
    timeoutMs: 1_000,
    settleTimeoutMs: 2_000,
  },
});

before(async () => {
  anvil = await startAnvil([]);
  [token, facilitator, node] = await Promise.all([
    deployToken(anvil, payer.address, 1_000_000_000n),
    startFacilitator(anvil.url),
    createFakeNode(),
  ]);
  service = await createService({ nodes: [{ url: node.url }] }, { access: { payment: payment() } });
});
after(async () => {
  await service?.close();
  await facilitator?.close();
  await node?.close();
  await anvil?.close();
});
beforeEach(() => {
  for (const operation of ["verify", "settle", "supported"] as const) {
    facilitator.faults[operation] = undefined;
  }
});

const chainId = call("eth_chainId");

/** Returns what the recipient has received while `run` ran. */
const received = async (run: () => Promise<void>): Promise<bigint> => {
  const start = await token.balanceOf(PAY_TO);
  await run();
  return (await token.balanceOf(PAY_TO)) - start;
};

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

test("a payment is used once: replayed for the same request and for another one", async () => {
  const headers = await payer.payFor(service.url, chainId);
  const paid = await received(async () => {
    assert.equal((await post(service.url, chainId, headers)).status, 200);
    for (const body of [chainId, call("eth_blockNumber")]) {
      const again = await post(service.url, body, headers);
      assert.deepEqual([again.status, again.body.error?.message], [402, "the payment was already used"]);
      assert.ok(again.headers.has("payment-required"));
    }
  });
  assert.equal(paid, 1_000n);
});

test("the same payment sent several times at once is accepted once", async () => {
  const headers = await payer.payFor(service.url, chainId);
  const paid = await received(async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(service.url, chainId, headers)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 402, 402, 402, 402]);
  });
  assert.equal(paid, 1_000n);
});

test("a payment with other terms is refused with its reason, before the facilitator is asked", async () => {
  const verified = facilitator.counts.verify;
  const challenge = await post(service.url, chainId);
  const cases: readonly (readonly [Partial<PaymentRequirements>, string])[] = [
    [{ maxTimeoutSeconds: -10 }, "the payment has expired"],
    [{ maxTimeoutSeconds: 100_000 }, "the payment is valid for longer than 120 seconds"],
    [{ amount: "999" }, "wrong amount: expected 1000"],
    [{ payTo: OTHER }, `wrong recipient: expected ${PAY_TO}`],
    [{ asset: OTHER }, `wrong asset: expected ${token.asset.address}`],
  ];
  for (const [change, message] of cases) {
    const headers = tamper(await payer.sign(challenge, change), ({ accepted }) => {
      accepted.maxTimeoutSeconds = 120;
    });
    const { status, body } = await post(service.url, chainId, headers);
    assert.deepEqual([status, body.error?.message], [402, message]);
  }
  assert.equal(facilitator.counts.verify, verified);
});

/** Changes a payment after it was signed. */
const tamper = (headers: Readonly<Record<string, string>>, change: (payment: SignedPayment) => void) => {
  const signed: SignedPayment = JSON.parse(Buffer.from(headers["PAYMENT-SIGNATURE"] ?? "", "base64").toString());
  change(signed);
  return { "PAYMENT-SIGNATURE": Buffer.from(JSON.stringify(signed)).toString("base64") };
};

interface SignedPayment {
  x402Version: number;
  accepted: { network: string; amount: string; maxTimeoutSeconds: number };
  payload: { signature: string; authorization: { value: string; to: string; nonce: string; from: string } };
}

test("a payment that was changed after it was signed is refused", async () => {
  const challenge = await post(service.url, chainId);
  const cheap = await payer.sign(challenge, { amount: "1" });
  const foreign = await payer.sign(challenge, { payTo: OTHER });
  const whole = await payer.sign(challenge);
  const cases: readonly (readonly [Readonly<Record<string, string>>, (payment: SignedPayment) => void, string])[] = [
    [whole, (signed) => Object.assign(signed.accepted, { network: "eip155:1" }), `wrong network: expected ${NETWORK}`],
    [cheap, (signed) => Object.assign(signed.accepted, { amount: "1000" }), "wrong amount: expected 1000"],
    [foreign, (signed) => Object.assign(signed.accepted, { payTo: PAY_TO }), `wrong recipient: expected ${PAY_TO}`],
    [
      cheap,
      (signed) => {
        signed.accepted.amount = "1000";
        signed.payload.authorization.value = "1000";
      },
      "the payment is not valid: invalid_exact_evm_signature",
    ],
    [whole, (signed) => Object.assign(signed, { x402Version: 3 }), NO_PAYMENT],
    [
      whole,
      (signed) => Object.assign(signed.payload.authorization, { nonce: "0x1" }),
      "the payment is not an authorization of EIP-3009",
    ],
  ];
  for (const [headers, change, message] of cases) {
    const { status, body } = await post(service.url, chainId, tamper(headers, change));
    assert.deepEqual([status, body.error?.message], [402, message]);
  }
  for (const [text, message] of [
    ["!", NO_PAYMENT],
    ["e30=", NO_PAYMENT],
    ["A".repeat(8_193), "the header PAYMENT-SIGNATURE is longer than 8192 bytes"],
  ] as const) {
    const { status, body } = await post(service.url, chainId, { "payment-signature": text });
    assert.deepEqual([status, body.error?.message], [402, message]);
  }
  // None of them has used the payment.
  assert.equal((await post(service.url, chainId, whole)).status, 200);
  // The digits of a nonce have two cases.
  const upper = tamper(whole, ({ payload: { authorization } }) => {
    authorization.nonce = `0x${authorization.nonce.slice(2).toUpperCase()}`;
    authorization.from = authorization.from.toLowerCase();
  });
  assert.equal((await post(service.url, chainId, upper)).body.error?.message, "the payment was already used");
});

test("nothing of a payment but its signed authorization reaches the facilitator", async () => {
  const verified = facilitator.counts.verify;
  const challenge = await post(service.url, chainId);
  const headers = await payer.sign(challenge);
  const foreign = tamper(headers, ({ payload }) => Object.assign(payload, { permit2Authorization: { from: OTHER } }));
  const refused = await post(service.url, chainId, foreign);
  assert.deepEqual(
    [refused.status, refused.body.error?.message],
    [402, "the payment is not an authorization of EIP-3009"],
  );
  assert.equal(facilitator.counts.verify, verified);
  const [terms] = payer.challengeOf(challenge).accepts;
  let signed: SignedPayment["payload"] | undefined;
  const extended = tamper(headers, (payment) => {
    signed = payment.payload;
    Object.assign(payment, { extensions: { sponsor: {} }, resource: { url: "http://other" }, unknown: 1 });
    Object.assign(payment.accepted, { maxTimeoutSeconds: 99_999, extra: { name: "Other", note: 1 } });
  });
  assert.equal((await post(service.url, chainId, extended)).status, 200);
  assert.deepEqual(facilitator.body(), {
    x402Version: 2,
    paymentPayload: { x402Version: 2, accepted: terms, payload: signed },
    paymentRequirements: terms,
  });
});

const NO_PAYMENT = "the header PAYMENT-SIGNATURE is not a payment of x402 version 2";

test("while the facilitator is down, requests are answered with 503, and nothing is charged", async () => {
  const headers = await payer.payFor(service.url, chainId);
  const asked = node.count("eth_chainId");
  const paid = await received(async () => {
    for (const fault of ["error", "hang"] as const) {
      facilitator.faults.verify = fault;
      const answer = await post(service.url, chainId, headers);
      assert.deepEqual([answer.status, answer.headers.get("retry-after"), answer.body.id], [503, "5", 1]);
      assert.match(answer.body.error?.message ?? "", /the facilitator does not answer, and nothing was charged$/);
    }
    assert.equal(node.count("eth_chainId"), asked);
    assert.equal((await post(service.url, call("net_version"))).status, 200);
    facilitator.faults.verify = undefined;
    assert.equal((await post(service.url, chainId, headers)).status, 200);
  });
  assert.equal(paid, 1_000n);
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
  assert.equal((await post(service.url, chainId, headers)).status, 200);
});

test("without the facilitator's answer to a settlement, the same request can be sent again, and is charged once", async () => {
  const headers = await payer.payFor(service.url, chainId);
  facilitator.faults.settle = "hang";
  const paid = await received(async () => {
    const answer = await post(service.url, chainId, headers);
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "5"]);
    assert.match(
      answer.body.error?.message ?? "",
      /^the facilitator did not confirm the payment: send the same request/,
    );
    facilitator.faults.settle = undefined;
    assert.equal((await post(service.url, call("eth_blockNumber"), headers)).status, 402);
    assert.equal((await post(service.url, chainId, headers)).status, 200);
    assert.equal((await post(service.url, chainId, headers)).status, 402);
  });
  assert.equal(paid, 1_000n);
});

test("a settlement whose answer is lost leaves the payment open, and another payment is not asked for", async () => {
  const headers = await payer.payFor(service.url, chainId);
  facilitator.faults.settle = "lost";
  facilitator.beforeSettle = async () => {
    // Only the first attempt loses its answer. The facilitator refuses the others: the nonce is used.
    facilitator.faults.settle = undefined;
  };
  const paid = await received(async () => {
    for (let request = 0; request < 2; request++) {
      const answer = await post(service.url, chainId, headers);
      assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "5"]);
      assert.equal(answer.headers.has("payment-required"), false);
      assert.match(answer.body.error?.message ?? "", /^the facilitator did not confirm the payment/);
    }
    const other = await post(service.url, call("eth_blockNumber"), headers);
    assert.equal(other.body.error?.message, "the payment was already used");
  });
  facilitator.beforeSettle = undefined;
  assert.equal(paid, 1_000n);
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

test("a WebSocket, and a request that is passed through, are refused with the reason where nobody has a key", async (t) => {
  const own = await createService(
    { nodes: [{ url: node.url }], passthrough: node.url },
    { access: { payment: payment() } },
  );
  t.after(() => own.close());
  const reason = /only JSON-RPC by POST can be paid for: this request needs an API key/;
  const refused = await fetch(`${own.url}/eth/v1/node`);
  assert.deepEqual([refused.status, reason.test(await refused.text())], [401, true]);
  const [, response] = await once(new WebSocket(own.url.replace("http:", "ws:")), "unexpected-response");
  assert.equal(response.statusCode, 401);
  assert.match(String((await response.toArray()).join("")), reason);
});

test("beside keys, a client without one can do nothing but pay for JSON-RPC", async (t) => {
  const own = await createService(
    { nodes: [{ url: node.url }], passthrough: node.url },
    { access: { payment: payment(), keys: [KEY] } },
  );
  t.after(() => own.close());
  for (const path of ["/eth/v1/node", "/", "/status.json"]) {
    assert.equal((await fetch(own.url + path)).status, 401, path);
  }
  const written = await fetch(`${own.url}/eth/v1/node`, { method: "POST", body: "{}" });
  assert.match(await written.text(), /only JSON-RPC by POST can be paid for/);
  const url = own.url.replace("http:", "ws:");
  const [, response] = await once(new WebSocket(url), "unexpected-response");
  assert.equal(response.statusCode, 401);
  assert.match(String((await response.toArray()).join("")), /an API key is needed/);
  const socket = new WebSocket(url, { headers: { "x-api-key": "k-free" } });
  await once(socket, "open");
  socket.close();
});

test("a client with a key does not pay, one with a wrong key is refused, one without a key pays", async (t) => {
  const own = await createService({ nodes: [{ url: node.url }] }, { access: { payment: payment(), keys: [KEY] } });
  t.after(() => own.close());
  assert.equal((await post(own.url, chainId, { "x-api-key": "k-free" })).status, 200);
  assert.equal((await post(own.url, chainId, { "x-api-key": "k-wrong" })).status, 401);
  assert.equal((await payer.send(own.url, chainId)).status, 200);
});

test("results are counted, and the configuration page has no secret of the facilitator", async () => {
  const value = (result: string) => metric(service.opsUrl, "forebay_payments_total", `result="${result}"`);
  for (const result of ["paid", "unpaid", "invalid", "expired", "replayed", "unsettled", "unknown", "unavailable"]) {
    assert.ok((await value(result)) > 0, result);
  }
  const tokens = await metric(service.opsUrl, "forebay_payment_tokens_total");
  assert.ok(Math.abs(tokens - (await value("paid")) * 0.001) < 0.0101, `${tokens}`);
  assert.ok((await metric(service.opsUrl, "forebay_facilitator_seconds_count", 'operation="settle"')) > 0);
  assert.ok((await metric(service.opsUrl, "forebay_facilitator_failures_total", 'operation="verify"')) > 0);
  const config = await (await fetch(`${service.opsUrl}/config`)).text();
  assert.ok(config.includes('"payTo"') && !config.includes("f-secret") && !config.includes("/facilitator"));
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
