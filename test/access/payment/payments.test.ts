import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { test } from "node:test";
import type { PaymentPayload, SettleResponse } from "@x402/core/types";
import {
  loadX402,
  localReservations,
  type PayableResponse,
  PaymentError,
  Payments,
} from "../../../src/access/payment/payments.ts";
import { type RpcError, unavailable } from "../../../src/jsonrpc/rpcError.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";

const address = (digit: string): string => `0x${digit.repeat(40)}`;
const ASSET = { address: address("c"), name: "USD Coin", version: "2", decimals: 6 };
const NETWORK = "eip155:31337";
const BATCH = '[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]';

const success: SettleResponse = { success: true, transaction: "0x1", network: NETWORK };

/** A header whose signature the facilitator of the rig accepts. Each nonce is another payment. */
const signedHeader = (nonce: number): string => {
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
        nonce: `0x${nonce.toString(16).padStart(64, "0")}`,
      },
    },
  };
  return Buffer.from(JSON.stringify(signed)).toString("base64");
};

/** Payments whose facilitator accepts everything, of one request at a time. Any signature is valid. */
const createRig = async (
  room = Number.POSITIVE_INFINITY,
  settle: () => Promise<SettleResponse> = () => Promise.resolve(success),
) => {
  const x402 = await loadX402();
  const sent = new EventEmitter();
  let settlements = 0;
  let held = 0;
  class AcceptingClient extends x402.HTTPFacilitatorClient {
    override verify() {
      return Promise.resolve({ isValid: true });
    }
    override settle(): Promise<SettleResponse> {
      settlements++;
      sent.emit("settle");
      return settle();
    }
  }
  const payments = new Payments({
    payment: {
      payTo: address("a"),
      network: NETWORK,
      asset: ASSET,
      price: { default: "0.001", methods: {} },
      maxTimeoutSeconds: 60,
      facilitator: { url: "http://x", headers: {}, timeoutMs: 1, settleTimeoutMs: 1, maxConcurrent: 1 },
    },
    x402: { ...x402, HTTPFacilitatorClient: AcceptingClient },
    reserve: localReservations(),
    maxBatch: 10,
    unitsOf: () => 1,
    telemetry: createTelemetry({ level: "silent" }),
  });
  const memory = {
    holdCalls: () => true,
    hold: () => true,
    drop: () => undefined,
    holdResponse: (bytes: number) => {
      held += bytes;
      return held <= room;
    },
  };
  return {
    handle: (response: PayableResponse, { nonce = 1, signal = new AbortController().signal } = {}) => {
      const received = { headers: { "payment-signature": signedHeader(nonce) }, asked: {} };
      const inbound = { received, caller: { clientId: "client", connection: {} }, signal, memory };
      return payments.handle({ body: Buffer.from(BATCH), chain: "op", target: "/", inbound }, () => response);
    },
    settlements: () => settlements,
    sent,
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

const EMPTY: PayableResponse = { status: 200, chunks: [], errors: [] };

test("while as many paid requests as allowed are in progress, another one gets 503, and can be sent again", async () => {
  const { promise, resolve } = Promise.withResolvers<SettleResponse>();
  const { handle, sent } = await createRig(Number.POSITIVE_INFINITY, () => promise);
  const settling = once(sent, "settle");
  const first = handle(EMPTY, { nonce: 1 });
  await settling;
  await assert.rejects(handle(EMPTY, { nonce: 2 }), {
    message: "payments are not available: too many paid requests are in progress",
    status: 503,
  });
  resolve(success);
  assert.equal((await first).headers?.[0], "PAYMENT-RESPONSE");
  assert.equal((await handle(EMPTY, { nonce: 2 })).headers?.[0], "PAYMENT-RESPONSE");
});

test("a client that leaves before its settlement is not charged, and can use the payment again", async () => {
  const { handle, settlements } = await createRig();
  const leaving = new AbortController();
  const stream = streamOf(["[]"], () => leaving.abort());
  assert.equal((await handle({ ...EMPTY, chunks: [stream] }, { signal: leaving.signal })).headers, undefined);
  assert.equal(settlements(), 0);
  assert.equal((await handle(EMPTY)).headers?.[0], "PAYMENT-RESPONSE");
});

test("a client that leaves during its settlement is charged", async () => {
  const { promise, resolve } = Promise.withResolvers<SettleResponse>();
  const { handle, sent } = await createRig(Number.POSITIVE_INFINITY, () => promise);
  const settling = once(sent, "settle");
  const leaving = new AbortController();
  const response = handle(EMPTY, { signal: leaving.signal });
  await settling;
  leaving.abort();
  resolve(success);
  assert.equal((await response).headers?.[0], "PAYMENT-RESPONSE");
});

test("a refusal of the facilitator without a network has that of the request", async () => {
  const { SettleError } = await loadX402();
  const refusal = { success: false, errorReason: "insufficient_funds" } as SettleResponse;
  const { handle } = await createRig(Number.POSITIVE_INFINITY, () => Promise.reject(new SettleError(400, refusal)));
  const error = await handle(EMPTY).then(undefined, (reason: unknown) => reason);
  assert.ok(error instanceof PaymentError);
  const receipt = error.headers[error.headers.indexOf("PAYMENT-RESPONSE") + 1] ?? "";
  assert.deepEqual(JSON.parse(Buffer.from(receipt, "base64").toString()), {
    success: false,
    transaction: "",
    network: NETWORK,
    payer: address("b"),
    errorReason: "insufficient_funds",
  });
});
