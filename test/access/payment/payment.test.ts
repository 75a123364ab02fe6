import assert from "node:assert/strict";
import { test } from "node:test";
import type { PaymentPayload } from "@x402/core/types";
import { loadX402, type Settlement } from "../../../src/access/payment/facilitator.ts";
import { type PayableResponse, Payments, type PaymentsOptions } from "../../../src/access/payment/payment.ts";
import { createLocalReservations } from "../../../src/access/payment/reservations.ts";
import { type RpcError, unavailable } from "../../../src/jsonrpc/rpcError.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";

const address = (digit: string): string => `0x${digit.repeat(40)}`;
const ASSET = { address: address("c"), name: "USD Coin", version: "2", decimals: 6 };
const NETWORK = "eip155:31337";
const BATCH = '[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]';

const settled: Settlement = { kind: "settled", response: { success: true, transaction: "0x1", network: NETWORK } };

/** Payments whose facilitator accepts everything. Any signature is valid. */
const createRig = async (room = Number.POSITIVE_INFINITY, changes: Partial<PaymentsOptions["facilitator"]> = {}) => {
  const x402 = await loadX402();
  let settlements = 0;
  let held = 0;
  const facilitator: PaymentsOptions["facilitator"] = {
    isOverloaded: false,
    verify: async () => undefined,
    settle: async () => {
      settlements++;
      return settled;
    },
    ...changes,
  };
  const payments = new Payments({
    payment: {
      payTo: address("a"),
      network: NETWORK,
      asset: ASSET,
      price: { default: "0.001", methods: {} },
      maxTimeoutSeconds: 60,
      facilitator: { url: "http://x", headers: {}, timeoutMs: 1, settleTimeoutMs: 1, maxConcurrent: 1 },
    },
    x402,
    facilitator,
    reservations: createLocalReservations(),
    maxBatch: 10,
    unitsOf: () => 1,
    telemetry: createTelemetry({ level: "silent" }),
  });
  const signed: PaymentPayload = {
    x402Version: 2,
    accepted: {
      scheme: "exact",
      network: NETWORK,
      asset: ASSET.address,
      amount: "2000",
      payTo: address("a"),
      maxTimeoutSeconds: 60,
      extra: {},
    },
    payload: {
      signature: "0x00",
      authorization: {
        from: address("b"),
        to: address("a"),
        value: "2000",
        validAfter: "0",
        validBefore: String(Math.floor(Date.now() / 1_000) + 60),
        nonce: `0x${"1".repeat(64)}`,
      },
    },
  };
  const inbound = {
    headers: { "payment-signature": Buffer.from(JSON.stringify(signed)).toString("base64") },
    caller: { clientId: "client", connection: {} },
    signal: new AbortController().signal,
    memory: {
      holdCalls: () => true,
      hold: () => true,
      drop: () => undefined,
      holdResponse: (bytes: number) => {
        held += bytes;
        return held <= room;
      },
    },
  };
  return {
    handle: (response: PayableResponse) =>
      payments.handle({ body: Buffer.from(BATCH), chain: "op", target: "/", inbound }, () => response),
    settlements: () => settlements,
  };
};

const streamOf = (parts: readonly string[], end: () => void = () => undefined) =>
  (async function* () {
    for (const part of parts) {
      yield Buffer.from(part);
    }
    end();
  })();

test("a stream is read to its end before its payment is settled", async () => {
  const { handle, settlements } = await createRig();
  let settledAtEnd = -1;
  const stream = streamOf(["[1", ",2]"], () => {
    settledAtEnd = settlements();
  });
  const { chunks, headers } = await handle({ status: 200, chunks: [stream], errors: [] });
  assert.equal(Buffer.concat(chunks as readonly Uint8Array[]).toString(), "[1,2]");
  assert.deepEqual([settledAtEnd, settlements()], [0, 1]);
  assert.equal(headers?.[0], "PAYMENT-RESPONSE");
});

test("a stream that fails is neither sent nor charged, and the payment can be used again", async () => {
  const { handle, settlements } = await createRig();
  const broken = streamOf(["[1"], () => {
    throw unavailable("no node");
  });
  await assert.rejects(handle({ status: 200, chunks: [broken], errors: [] }), { message: "no node" });
  assert.equal(settlements(), 0);
  assert.equal((await handle({ status: 200, chunks: [], errors: [] })).status, 200);
});

test("an error that a batch adds while it streams is not charged", async () => {
  const { handle, settlements } = await createRig();
  const errors: RpcError[] = [];
  const stream = streamOf(["["], () => errors.push(unavailable("no node")));
  await assert.rejects(handle({ status: 200, chunks: [stream], errors }), {
    message: "a call of the batch failed, and nothing was charged: no node",
    status: 503,
  });
  assert.equal(settlements(), 0);
});

test("a stream without room in the memory budget is neither sent nor charged", async () => {
  const { handle, settlements } = await createRig(3);
  const long = streamOf(["[1", ",2]"]);
  await assert.rejects(handle({ status: 200, chunks: [long], errors: [] }), { status: 503 });
  assert.equal(settlements(), 0);
});

test("while too many settlements wait, a request gets 503 before it is served", async () => {
  const { handle } = await createRig(Number.POSITIVE_INFINITY, { isOverloaded: true });
  let isServed = false;
  const stream = streamOf(["[]"], () => {
    isServed = true;
  });
  await assert.rejects(handle({ status: 200, chunks: [stream], errors: [] }), {
    message: "payments are not available: too many payments wait for the facilitator",
    status: 503,
  });
  assert.equal(isServed, false);
});

test("the payment of a client that left before the settlement can be used again", async () => {
  const outcomes: Settlement[] = [{ kind: "disconnected" }, settled];
  const { handle } = await createRig(Number.POSITIVE_INFINITY, { settle: async () => outcomes.shift() ?? settled });
  assert.equal((await handle({ status: 200, chunks: [], errors: [] })).headers, undefined);
  assert.equal((await handle({ status: 200, chunks: [], errors: [] })).headers?.[0], "PAYMENT-RESPONSE");
});
