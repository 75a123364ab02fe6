import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { PaymentRequirements } from "@x402/core/types";
import { PAY_TO, startPaidService } from "../support/payments/paidService.ts";
import { call, chainId, post } from "../support/payments/payer.ts";
import { type SignedPayment, tamper } from "../support/payments/tamper.ts";
import { NETWORK } from "../support/payments/token.ts";

const OTHER = "0x00000000000000000000000000000000000000bb";
const NO_PAYMENT = "the header PAYMENT-SIGNATURE is not a payment of x402 version 2";

const { service, facilitator, payer, token, received, close } = await startPaidService();
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
