import { hash } from "node:crypto";
import type { PaymentRequired, SettleResponse, VerifyResponse } from "@x402/core/types";
import { connectionFault } from "../../core/connectionFault.ts";
import type { InboundRequest } from "../../core/context.ts";
import type { Awaitable } from "../../jsonrpc/call.ts";
import { type Chunk, isStream, type ResultMemory } from "../../jsonrpc/response.ts";
import { CODES, overBudget, RpcError, unavailable } from "../../jsonrpc/rpcError.ts";
import { FairGate } from "../../limits/fairGate.ts";
import { ownerOf } from "../../limits/fairQueue.ts";
import type { PaymentResult } from "../../telemetry/clientMetrics.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import {
  isCharged,
  type PaymentOptions,
  PriceList,
  type Quote,
  type QuoteOptions,
  type ReadPayment,
  readPayment,
  X402_VERSION,
} from "./quote.ts";
import type { Reservation, Reservations } from "./reservations.ts";

export interface PaymentsOptions extends QuoteOptions {
  readonly x402: X402;
  readonly reservations: Reservations;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

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

/** The x402 package. */
export type X402 = typeof import("@x402/core/http") &
  typeof import("@x402/core/schemas") &
  typeof import("@x402/core/types");

/** Loads the package. Rejects if it is not installed. */
export const loadX402 = async (): Promise<X402> => {
  try {
    const [http, schemas, types] = await Promise.all([
      import("@x402/core/http"),
      import("@x402/core/schemas"),
      import("@x402/core/types"),
    ]);
    return { ...http, ...schemas, ...types };
  } catch (error) {
    throw new Error("access.payment needs a package that is not installed: npm install @x402/core", { cause: error });
  }
};

/** Returns the package's client of a facilitator, whose requests have this deadline. */
export const facilitatorClient = (
  { HTTPFacilitatorClient }: Pick<X402, "HTTPFacilitatorClient">,
  { url, headers }: PaymentOptions["facilitator"],
  timeoutMs: number,
): InstanceType<X402["HTTPFacilitatorClient"]> => {
  const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers });
  return new HTTPFacilitatorClient({ url, timeoutMs, createAuthHeaders });
};

/** The error of a request without a valid payment (402), with its challenge. */
export class PaymentError extends RpcError {
  override readonly name = "PaymentError";
  /** Header names and values, in one flat list. */
  readonly headers: readonly string[];

  constructor(message: string, challenge: PaymentRequired, headers: readonly string[]) {
    super(CODES.PAYMENT_REQUIRED, message, { status: 402, data: challenge });
    this.headers = headers;
  }
}

/** One request with its price. */
interface Sale extends PayableRequest {
  readonly quote: Quote;
}

interface PaidSale extends Sale {
  readonly payment: ReadPayment;
  readonly reservation: Reservation;
}

/** A response of the facilitator, or the package's error of a refusal. */
type FacilitatorAnswer = Partial<VerifyResponse & SettleResponse>;

/** Verifications that wait for their turn. */
const MAX_WAITING = 1_000;
/** Settlements that wait, for each that runs. More of them could wait until their payments expire. */
const WAITING_PER_SETTLEMENT = 8;
/**
 * The token transfers one authorization once, so a settlement without an answer is sent again.
 * If the first attempt settled, a facilitator may refuse the second: the nonce is used.
 */
const SETTLE_ATTEMPTS = 2;
const RETRY_AFTER_SECONDS = 5;
/** x402: the transfer was sent and is not mined yet. */
const PENDING = "settlement_pending";
const OVERLOADED = "payments are not available: too many payments wait for the facilitator";
const NO_OUTCOME =
  "the facilitator did not confirm the payment: send the same request with the same payment again. It is charged once";
/** Browsers show scripts the headers of the protocol then. */
const EXPOSED = ["Access-Control-Expose-Headers", "PAYMENT-REQUIRED, PAYMENT-RESPONSE"] as const;
/** A Host header with other characters is not copied into a challenge. */
const HOST = /^[\w.:[\]-]{1,255}$/;
/** Other texts of the facilitator are not repeated to a client. */
const REASON = /^[\w.: -]{1,100}$/;

/** Sells requests to clients without a key: quotes a price, verifies the payment, serves the request, settles the payment. */
export class Payments {
  readonly #options: PaymentsOptions;
  readonly #prices: PriceList;
  readonly #verifier: ReturnType<typeof facilitatorClient>;
  readonly #settler: ReturnType<typeof facilitatorClient>;
  readonly #verifications: FairGate;
  /** Refuses nothing: each has a verified payment, and a response that is ready. New requests are refused instead. */
  readonly #settlements: FairGate;
  readonly #maxWaitingSettlements: number;
  #isFailing = false;

  constructor(options: PaymentsOptions) {
    const { facilitator } = options.payment;
    const { timeoutMs, settleTimeoutMs, maxConcurrent: max } = facilitator;
    this.#options = options;
    this.#prices = new PriceList(options);
    this.#verifier = facilitatorClient(options.x402, facilitator, timeoutMs);
    this.#settler = facilitatorClient(options.x402, facilitator, settleTimeoutMs);
    this.#verifications = new FairGate({ max, maxWaiting: MAX_WAITING, overloaded: OVERLOADED });
    this.#settlements = new FairGate({ max });
    this.#maxWaitingSettlements = max * WAITING_PER_SETTLEMENT;
  }

  /**
   * Serves a request into memory, settles its payment, and returns the response. A free request is served at once.
   * A write is served detached: it ends when its calls end, even if its client has disconnected.
   * Rejects with PaymentError (402) without a valid payment, and with RpcError if payments are not available.
   */
  async handle<R extends PayableResponse>(
    request: PayableRequest,
    serve: (isDetached: boolean) => Awaitable<R>,
  ): Promise<R> {
    const quote = this.#prices.quote(request);
    if (quote === undefined) {
      return serve(false);
    }
    const sale = { ...request, quote };
    const header = request.inbound.received.headers["payment-signature"];
    if (typeof header !== "string") {
      throw this.#refuse(sale, "unpaid", "payment required");
    }
    const payment = readPayment(this.#options.x402, header, quote.required);
    if ("fault" in payment) {
      throw this.#refuse(sale, payment.fault, payment.message);
    }
    if (this.#settlements.waiting >= this.#maxWaitingSettlements) {
      this.#count("unavailable");
      throw unavailable(OVERLOADED, RETRY_AFTER_SECONDS);
    }
    const reservation = await this.#reserve(sale, payment);
    const paid = { ...sale, payment, reservation };
    return this.#complete(paid, await this.#serve(paid, () => serve(quote.isWrite)));
  }

  async #reserve(sale: Sale, payment: ReadPayment): Promise<Reservation> {
    const digest = hash("sha256", Buffer.concat([Buffer.from(`${sale.chain}\n`), sale.body]));
    const reservation = await this.#options.reservations.reserve(payment, digest).catch(() => {
      // The store counts and logs its failures.
      this.#count("unavailable");
      throw noAnswer("the store of payments");
    });
    if (reservation === undefined) {
      throw this.#refuse(sale, "replayed", "the payment was already used");
    }
    return reservation;
  }

  /** Verifies the payment and returns the whole response in memory. If it rejects, the payment is released. */
  async #serve<R extends PayableResponse>(sale: PaidSale, serve: () => Awaitable<R>): Promise<R> {
    const { inbound, quote, reservation } = sale;
    let failure: PaymentResult = "unavailable";
    try {
      if (reservation.state === "new") {
        await this.#verify(sale);
      }
      failure = "left";
      inbound.signal.throwIfAborted();
      failure = "failed";
      const response = await serve();
      // The memory of a client that has disconnected is released, and counts nothing more.
      const served = {
        ...response,
        chunks: await collect(response.chunks, quote.isWrite ? undefined : inbound.memory),
      };
      const uncharged = quote.isBatch ? served.errors?.find((error) => !isCharged(error)) : undefined;
      if (uncharged !== undefined) {
        throw unchargedBatch(uncharged);
      }
      return served;
    } catch (error) {
      await endQuietly(reservation.release);
      if (!(error instanceof PaymentError)) {
        this.#count(failure);
      }
      throw error;
    }
  }

  async #verify(sale: PaidSale): Promise<void> {
    const answer = await this.#verifications.run(ownerOf(sale.inbound.caller), () => this.#ask("verify", sale));
    if (answer === undefined) {
      throw noAnswer("the facilitator");
    }
    if (!answer.isValid) {
      throw this.#refuse(sale, "invalid", `the payment is not valid: ${reasonOf(answer.invalidReason)}`);
    }
  }

  /** Settles the payment of a response. Releases it if the response is not charged, or if its client has disconnected before its turn. */
  async #complete<R extends PayableResponse>(sale: PaidSale, served: R): Promise<R> {
    const { inbound, quote, reservation } = sale;
    // A write that a node accepted is settled, whether or not its client waits for the response.
    const isLeft = (): boolean => inbound.signal.aborted && !quote.isWrite;
    const isFree = isLeft() || served.errors?.some((error) => !isCharged(error));
    const settle = async () => (isLeft() ? undefined : this.#settle(sale));
    const receipt = isFree ? undefined : await this.#settlements.run(ownerOf(inbound.caller), settle);
    if (receipt === undefined) {
      await endQuietly(reservation.release);
      this.#count(isLeft() ? "left" : "failed");
      return served;
    }
    return { ...served, headers: [...receipt, ...EXPOSED] };
  }

  /** Settles the payment. Returns the headers of its receipt. */
  async #settle(sale: PaidSale): Promise<string[]> {
    const { payment: options, telemetry, x402 } = this.#options;
    const { chain, payment, quote, reservation } = sale;
    const { amount, network } = quote.required;
    const answer = await this.#trySettle(sale);
    if (answer === undefined) {
      await endQuietly(reservation.suspend);
      telemetry.log.warn({ chain, payment: payment.id }, "a settlement has no outcome");
      this.#count("unknown");
      throw unavailable(NO_OUTCOME, RETRY_AFTER_SECONDS);
    }
    // The package has not checked the members of a refusal.
    const receiptNetwork = answer instanceof Error ? network : (answer.network ?? network);
    const receipt = [
      "PAYMENT-RESPONSE",
      x402.encodePaymentResponseHeader(forClient({ ...answer, network: receiptNetwork })),
    ];
    if (!answer.success) {
      await endQuietly(reservation.release);
      throw this.#refuse(sale, "unsettled", `the payment was not settled: ${reasonOf(answer.errorReason)}`, receipt);
    }
    this.#count("paid");
    telemetry.metrics.paidTokens.inc(Number(amount) / 10 ** options.asset.decimals);
    const { transaction } = answer;
    telemetry.log.info({ chain, payer: payment.payer, amount, transaction }, "a payment was settled");
    return receipt;
  }

  /** Returns the facilitator's answer. Undefined without an outcome: the payment may be settled. */
  async #trySettle(sale: PaidSale): Promise<FacilitatorAnswer | undefined> {
    for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
      const answer = await this.#ask("settle", sale);
      if (answer?.success) {
        return answer;
      }
      if (answer !== undefined && answer.errorReason !== PENDING) {
        // A refusal does not show that an earlier attempt failed: it may be the reason for the refusal.
        return attempt === 0 && sale.reservation.state === "new" ? answer : undefined;
      }
    }
    return undefined;
  }

  /** Returns the facilitator's answer. Undefined if there is none. */
  async #ask(operation: "verify" | "settle", { payment, quote }: PaidSale): Promise<FacilitatorAnswer | undefined> {
    const { telemetry, x402 } = this.#options;
    const { log, metrics } = telemetry;
    const startMs = performance.now();
    try {
      const client = operation === "verify" ? this.#verifier : this.#settler;
      const answer: FacilitatorAnswer = await client[operation](payment.payload, quote.required);
      metrics.facilitatorSeconds.observe({ operation }, (performance.now() - startMs) / 1_000);
      if (this.#isFailing) {
        log.info("the facilitator answers again");
      }
      this.#isFailing = false;
      return answer;
    } catch (error) {
      if ((error instanceof x402.VerifyError || error instanceof x402.SettleError) && error.statusCode < 500) {
        return error;
      }
      metrics.facilitatorFailures.inc({ operation });
      if (!this.#isFailing) {
        // The text of the error may quote the facilitator's URL.
        log.warn({ operation, reason: connectionFault(error) }, "the facilitator does not answer");
      }
      this.#isFailing = true;
      return undefined;
    }
  }

  /** Creates the response to a request without a valid payment: header and body of x402, version 2. */
  #refuse({ chain, inbound, quote, target }: Sale, result: PaymentResult, message: string, headers: string[] = []) {
    const { payment, telemetry, x402 } = this.#options;
    this.#count(result);
    if (result !== "unpaid") {
      inbound.caller.charge?.(1, "payment");
      telemetry.log.debug({ chain, result, reason: message }, "a payment was refused");
    }
    const url = resourceUrl(payment.publicUrl, inbound.received.headers.host, target);
    const challenge: PaymentRequired = {
      x402Version: X402_VERSION,
      error: message,
      resource: { url, description: "JSON-RPC", mimeType: "application/json" },
      accepts: [quote.required],
    };
    const required = ["PAYMENT-REQUIRED", x402.encodePaymentRequiredHeader(challenge)];
    const cacheControl = ["Cache-Control", x402.PAYMENT_REQUIRED_CACHE_CONTROL];
    return new PaymentError(message, challenge, [...required, ...cacheControl, ...EXPOSED, ...headers]);
  }

  #count(result: PaymentResult): void {
    this.#options.telemetry.metrics.payments.inc({ result });
  }
}

/** Creates the error of a facilitator, or of a store, that does not answer. The client keeps its payment. */
const noAnswer = (part: string): RpcError =>
  unavailable(`payments are not available: ${part} does not answer, and nothing was charged`, RETRY_AFTER_SECONDS);

const reasonOf = (reason: string | undefined): string =>
  reason !== undefined && REASON.test(reason) ? reason : "the facilitator gave no reason";

/** Other texts of a facilitator may name its own nodes. */
const forClient = ({
  success = false,
  transaction = "",
  network,
  payer,
  amount,
  errorReason,
}: FacilitatorAnswer & Pick<SettleResponse, "network">): SettleResponse => ({
  ...{ success, transaction, network },
  ...(payer !== undefined && { payer }),
  ...(amount !== undefined && { amount }),
  ...(!success && { errorReason: reasonOf(errorReason) }),
});

/** Ends a reservation. If the store fails, the reservation ends when the payment expires. */
const endQuietly = (end: () => Promise<void>): Promise<void> => end().catch(() => undefined);

/** Returns the error instead of a batch. Its other results are not sent, because nobody paid for them. */
const unchargedBatch = ({ code, message, status, retryAfterSeconds }: RpcError): RpcError =>
  new RpcError(code, `a call of the batch failed, and nothing was charged: ${message}`, { status, retryAfterSeconds });

/** Returns the URL that a challenge names: of the chain, without the query. */
const resourceUrl = (publicUrl: string | undefined, host: string | undefined, target: string): string => {
  const base = publicUrl ?? (host !== undefined && HOST.test(host) ? `http://${host}` : "http://localhost");
  const [path = "/"] = target.split("?", 1);
  return `${base.replace(/\/+$/, "")}${path.startsWith("/") ? path : "/"}`;
};

/** Reads the streams of a response into memory. Rejects if a stream fails, or with RpcError (503) without room. */
const collect = async (chunks: readonly Chunk[], memory: ResultMemory | undefined): Promise<Uint8Array[]> => {
  const whole: Uint8Array[] = [];
  for (const chunk of chunks) {
    for await (const part of isStream(chunk) ? chunk : [chunk]) {
      if (isStream(chunk) && memory?.holdResponse(part.length) === false) {
        throw overBudget();
      }
      whole.push(part);
    }
  }
  return whole;
};
