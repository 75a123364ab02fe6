import assert from "node:assert/strict";
import { test } from "node:test";
import type { PaymentPayload, PaymentRequirements, SettleResponse } from "@x402/core/types";
import { Facilitator, loadX402, type Payable } from "../../../src/access/payment/facilitator.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";

const NETWORK = "eip155:31337";
const required: PaymentRequirements = {
  scheme: "exact",
  network: NETWORK,
  asset: `0x${"c".repeat(40)}`,
  amount: "1000",
  payTo: `0x${"a".repeat(40)}`,
  maxTimeoutSeconds: 60,
  extra: {},
};
const payload: PaymentPayload = { x402Version: 2, accepted: required, payload: {} };
const payable: Payable = { payload, required };
const success: SettleResponse = { success: true, transaction: "0x1", network: NETWORK };
const owner = { clientId: "client", group: {} };

/** A facilitator with one settlement at a time. Each settlement waits for its answer. */
const createRig = async () => {
  const x402 = await loadX402();
  const answers: ((response: SettleResponse) => void)[] = [];
  class HeldClient extends x402.HTTPFacilitatorClient {
    override settle(): Promise<SettleResponse> {
      const { promise, resolve } = Promise.withResolvers<SettleResponse>();
      answers.push(resolve);
      return promise;
    }
  }
  const options = { url: "http://x", headers: {}, timeoutMs: 1, settleTimeoutMs: 1, maxConcurrent: 1 };
  const telemetry = createTelemetry({ level: "silent" });
  const facilitator = new Facilitator(options, { ...x402, HTTPFacilitatorClient: HeldClient }, telemetry);
  return { facilitator, answers };
};

test("a client that leaves while its settlement waits for its turn is not charged", async () => {
  const { facilitator, answers } = await createRig();
  const first = facilitator.settle(payable, owner);
  const leaving = new AbortController();
  const second = facilitator.settle(payable, owner, leaving.signal);
  leaving.abort();
  answers[0]?.(success);
  assert.deepEqual(await Promise.all([first, second]), [
    { kind: "settled", response: success },
    { kind: "disconnected" },
  ]);
  assert.equal(answers.length, 1);
});

test("a client that leaves during its settlement is charged", async () => {
  const { facilitator, answers } = await createRig();
  const leaving = new AbortController();
  const settling = facilitator.settle(payable, owner, leaving.signal);
  leaving.abort();
  answers[0]?.(success);
  assert.equal((await settling).kind, "settled");
});

test("the facilitator is overloaded while eight settlements wait for each that runs", async () => {
  const { facilitator } = await createRig();
  for (let settlement = 0; settlement < 9; settlement++) {
    assert.equal(facilitator.isOverloaded, false);
    facilitator.settle(payable, owner);
  }
  assert.equal(facilitator.isOverloaded, true);
});
