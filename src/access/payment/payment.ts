import { hash } from "node:crypto";
import type { PaymentRequirements } from "@x402/core/types";
import type { InboundRequest } from "../../core/context.ts";
import type { Awaitable } from "../../jsonrpc/call.ts";
import { type Chunk, isStream, type ResultMemory } from "../../jsonrpc/response.ts";
import { overBudget, RpcError } from "../../jsonrpc/rpcError.ts";
import { ownerOf } from "../../limits/fairQueue.ts";
import type { PaymentResult } from "../../telemetry/clientMetrics.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import { type Bill, type BillOf, createBills, isCharged } from "./bill.ts";
import { type Facilitator, paymentOpen, paymentsOverloaded, paymentsUnavailable, type X402 } from "./facilitator.ts";
import {
  createChallenge,
  EXPOSED,
  type PaymentOptions,
  type ReadPayment,
  readPayment,
  requirementsOf,
  resourceUrl,
} from "./paymentHeaders.ts";
import type { Reservation, Reservations } from "./reservations.ts";

/** A POST of a client without a key. */
export interface PayableRequest {
  readonly body: Uint8Array;
  /** The name of the chain. */
  readonly chain: string;
  readonly target: string;
  readonly inbound: InboundRequest;
}

/** The part of a response that decides whether it is charged. */
export interface PayableResponse {
  readonly status: number;
  readonly chunks: readonly Chunk[];
  /** The errors in the response. Complete when all chunks are read. */
  readonly errors?: readonly RpcError[] | undefined;
  readonly headers?: readonly string[] | undefined;
}

export interface PaymentsOptions {
  readonly payment: PaymentOptions;
  readonly x402: X402;
  readonly facilitator: Pick<Facilitator, "verify" | "settle" | "isOverloaded">;
  readonly reservations: Reservations;
  readonly maxBatch: number;
  /** Returns the units of one call. */
  unitsOf(chain: string, method: string): number;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** Serves a request. A detached request ends when its calls end, even if its client has disconnected. */
export type Serve<R> = (isDetached: boolean) => Awaitable<R>;

/** One request with its terms. */
interface Sale {
  readonly request: PayableRequest;
  readonly bill: Bill;
  readonly required: PaymentRequirements;
}

interface PaidSale extends Sale {
  readonly payment: ReadPayment;
  readonly reservation: Reservation;
}

const MS_PER_SECOND = 1_000;

/** Returns the error instead of a batch. Its other results are not sent, because nobody paid for them. */
const unchargedBatch = ({ code, message, status, retryAfterSeconds }: RpcError): RpcError =>
  new RpcError(code, `a call of the batch failed, and nothing was charged: ${message}`, {
    status,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });

/** Answers the requests of clients without a key after they have paid. */
export class Payments {
  readonly #options: PaymentsOptions;
  readonly #billOf: BillOf;

  constructor(options: PaymentsOptions) {
    this.#options = options;
    this.#billOf = createBills(options);
  }

  /**
   * Serves a request into memory, settles its payment, and returns the response. A free request is served at once.
   * Rejects with PaymentError (402) without a valid payment, and with RpcError if payments are not available.
   */
  async handle<R extends PayableResponse>(request: PayableRequest, serve: Serve<R>): Promise<R> {
    const bill = this.#billOf(request);
    if (bill === undefined || bill.amount === 0n) {
      return serve(false);
    }
    const sale: Sale = { request, bill, required: requirementsOf(this.#options.payment, bill.amount) };
    const header = request.inbound.headers["payment-signature"];
    if (typeof header !== "string") {
      throw this.#refuse(sale, "unpaid", "payment required");
    }
    const { x402 } = this.#options;
    const payment = readPayment(x402, header, sale.required, Math.floor(Date.now() / MS_PER_SECOND));
    if ("fault" in payment) {
      throw this.#refuse(sale, payment.fault, payment.message);
    }
    if (this.#options.facilitator.isOverloaded) {
      this.#count("unavailable");
      throw paymentsOverloaded();
    }
    const reservation = await this.#reserve(sale, payment);
    return this.#handleReserved({ ...sale, payment, reservation }, serve);
  }

  async #reserve(sale: Sale, { id, seconds }: ReadPayment): Promise<Reservation> {
    const { body, chain } = sale.request;
    const digest = hash("sha256", Buffer.concat([Buffer.from(`${chain}\n`), body]));
    let reservation: Reservation | undefined;
    try {
      reservation = await this.#options.reservations.reserve({ id, digest, seconds });
    } catch {
      // The store counts and logs its failures.
      this.#count("unavailable");
      throw paymentsUnavailable("the store of payments");
    }
    if (reservation === undefined) {
      throw this.#refuse(sale, "replayed", "the payment was already used");
    }
    return reservation;
  }

  /** Serves and settles. Every other end releases the payment. */
  async #handleReserved<R extends PayableResponse>(sale: PaidSale, serve: Serve<R>): Promise<R> {
    const { reservation, bill } = sale;
    const { signal } = sale.request.inbound;
    let served: R;
    try {
      if (reservation.state === "new") {
        await this.#verify(sale);
      }
      this.#stopIfDisconnected(signal);
      served = await this.#serve(sale, serve);
    } catch (error) {
      await this.#end(() => reservation.release());
      throw error;
    }
    const { errors = [] } = served;
    // A write that a node accepted is settled, whether or not its client waits for the response.
    const isDisconnected = signal.aborted && !bill.isWrite;
    if (isDisconnected || errors.some((error) => !isCharged(error))) {
      await this.#end(() => reservation.release());
      this.#count(isDisconnected ? "left" : "failed");
      return served;
    }
    return this.#settle(sale, served);
  }

  /** Throws if the client has disconnected. */
  #stopIfDisconnected(signal: AbortSignal): void {
    if (signal.aborted) {
      this.#count("left");
    }
    signal.throwIfAborted();
  }

  async #verify(sale: PaidSale): Promise<void> {
    const { payment, required, request } = sale;
    let reason: string | undefined;
    try {
      reason = await this.#options.facilitator.verify(
        { payload: payment.payload, required },
        ownerOf(request.inbound.caller),
      );
    } catch (error) {
      this.#count("unavailable");
      throw error;
    }
    if (reason !== undefined) {
      throw this.#refuse(sale, "invalid", `the payment is not valid: ${reason}`);
    }
  }

  /** Returns the whole response in memory. Of a batch with an error that is not charged, only that error is returned. */
  async #serve<R extends PayableResponse>({ request, bill }: PaidSale, serve: Serve<R>): Promise<R> {
    let served: R;
    try {
      const response = await serve(bill.isWrite);
      // The memory of a client that has disconnected is released, and counts nothing more.
      const memory = bill.isWrite ? undefined : request.inbound.memory;
      served = { ...response, chunks: await collectChunks(response.chunks, memory) };
    } catch (error) {
      this.#count("failed");
      throw error;
    }
    const uncharged = bill.isBatch ? served.errors?.find((error) => !isCharged(error)) : undefined;
    if (uncharged !== undefined) {
      this.#count("failed");
      throw unchargedBatch(uncharged);
    }
    return served;
  }

  async #settle<R extends PayableResponse>(sale: PaidSale, served: R): Promise<R> {
    const { x402, facilitator, payment: options, telemetry } = this.#options;
    const { payment, required, reservation, request, bill } = sale;
    const payable = { payload: payment.payload, required };
    const signal = bill.isWrite ? undefined : request.inbound.signal;
    const settlement = await facilitator.settle(payable, ownerOf(request.inbound.caller), signal);
    if (settlement.kind === "disconnected") {
      await this.#end(() => reservation.release());
      this.#count("left");
      return served;
    }
    // A refusal does not show that an earlier attempt failed: it may be the reason for the refusal.
    if (settlement.kind === "unknown" || (settlement.kind === "failed" && reservation.state === "repeated")) {
      await this.#end(() => reservation.suspend());
      this.#count("unknown");
      telemetry.log.warn({ chain: request.chain, payment: payment.id }, "a settlement has no outcome");
      throw paymentOpen();
    }
    const headers = ["PAYMENT-RESPONSE", x402.encodePaymentResponseHeader(settlement.response)];
    if (settlement.kind === "failed") {
      await this.#end(() => reservation.release());
      const { errorReason } = settlement.response;
      throw this.#refuse(sale, "unsettled", `the payment was not settled: ${errorReason}`, headers);
    }
    this.#count("paid");
    telemetry.metrics.paidTokens.inc(Number(bill.amount) / 10 ** options.asset.decimals);
    const { chain } = request;
    const { transaction } = settlement.response;
    telemetry.log.info({ chain, payer: payment.payer, amount: required.amount, transaction }, "a payment was settled");
    return { ...served, headers: [...headers, ...EXPOSED] };
  }

  /** Ends a reservation. If the store fails, the reservation ends when the payment expires. */
  async #end(end: () => Promise<void>): Promise<void> {
    await end().catch(() => undefined);
  }

  #refuse({ request, required }: Sale, result: PaymentResult, message: string, headers: readonly string[] = []) {
    this.#count(result);
    if (result !== "unpaid") {
      request.inbound.caller.charge?.(1, "payment");
      this.#options.telemetry.log.debug({ chain: request.chain, result, reason: message }, "a payment was refused");
    }
    const url = resourceUrl(this.#options.payment.publicUrl, request.inbound.headers.host, request.target);
    return createChallenge(this.#options.x402, message, { required, url, headers });
  }

  #count(result: PaymentResult): void {
    this.#options.telemetry.metrics.payments.inc({ result });
  }
}

/** Reads the streams of a response into memory. Rejects if a stream fails, or with RpcError (503) without room. */
const collectChunks = async (
  chunks: readonly Chunk[],
  memory: ResultMemory | undefined,
): Promise<readonly Uint8Array[]> => {
  const whole: Uint8Array[] = [];
  for (const chunk of chunks) {
    if (!isStream(chunk)) {
      whole.push(chunk);
      continue;
    }
    for await (const part of chunk) {
      if (memory?.holdResponse(part.length) === false) {
        throw overBudget();
      }
      whole.push(part);
    }
  }
  return whole;
};
