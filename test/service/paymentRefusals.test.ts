import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startPaidService } from "../support/payments/paidService.ts";
import { call, chainId, post } from "../support/payments/payer.ts";
import { type SignedPayment, tamper } from "../support/payments/tamper.ts";

const OTHER = "0x00000000000000000000000000000000000000bb";
const NO_PAYMENT = "the header PAYMENT-SIGNATURE is not a payment of x402 version 2 with EIP-3009";

const { service, facilitator, payer, received, close } = await startPaidService();
after(close);

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

test("a payment that has expired, or is valid for too long, is refused before the facilitator is asked", async () => {
  const verified = facilitator.counts.verify;
  const challenge = await post(service.url, chainId);
  for (const [maxTimeoutSeconds, message] of [
    [-10, "the payment has expired"],
    [100_000, "the payment is valid for longer than 120 seconds"],
  ] as const) {
    const { status, body } = await post(service.url, chainId, await payer.sign(challenge, { maxTimeoutSeconds }));
    assert.deepEqual([status, body.error?.message], [402, message]);
  }
  assert.equal(facilitator.counts.verify, verified);
});

test("a payment with other terms, or one that was changed after it was signed, is refused", async () => {
  const challenge = await post(service.url, chainId);
  const whole = await payer.sign(challenge);
  const cheap = await payer.sign(challenge, { amount: "999" });
  const cases: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [cheap, "the payment is not valid: invalid_exact_evm_payload_authorization_value_mismatch"],
    [await payer.sign(challenge, { payTo: OTHER }), "the payment is not valid: invalid_exact_evm_recipient_mismatch"],
    [await payer.sign(challenge, { asset: OTHER }), "the payment is not valid: invalid_exact_evm_signature"],
    [
      tamper(cheap, ({ payload }) => Object.assign(payload.authorization, { value: "1000" })),
      "the payment is not valid: invalid_exact_evm_signature",
    ],
    [tamper(whole, (signed) => Object.assign(signed, { x402Version: 3 })), NO_PAYMENT],
    [tamper(whole, ({ payload }) => Object.assign(payload.authorization, { nonce: "0x1" })), NO_PAYMENT],
    [{ "payment-signature": "!" }, NO_PAYMENT],
    [{ "payment-signature": "e30=" }, NO_PAYMENT],
  ];
  const paid = await received(async () => {
    for (const [headers, message] of cases) {
      const { status, body } = await post(service.url, chainId, headers);
      assert.deepEqual([status, body.error?.message], [402, message]);
    }
  });
  assert.equal(paid, 0n);
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
  const challenge = await post(service.url, chainId);
  const headers = await payer.sign(challenge);
  const [terms] = payer.challengeOf(challenge).accepts;
  let signed: SignedPayment["payload"] | undefined;
  const extended = tamper(headers, (payment) => {
    signed = { ...payment.payload };
    Object.assign(payment.payload, { permit2Authorization: { from: OTHER } });
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
