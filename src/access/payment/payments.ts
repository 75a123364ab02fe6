import type { PaymentRequired, SettleResponse, VerifyResponse } from "@x402/core/types";
import { connectionFault } from "../../core/connectionFault.ts";
import type { InboundRequest } from "../../core/context.ts";
import type { Awaitable } from "../../jsonrpc/call.ts";
import { type Chunk, isStream, type ResultMemory } from "../../jsonrpc/response.ts";
import { CODES, overBudget, RpcError, unavailable } from "../../jsonrpc/rpcError.ts";
import type { PaymentResult } from "../../telemetry/clientMetrics.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import {
  createQuotes,
  isCharged,
  type PaymentOptions,
  type Quote,
  type QuoteOptions,
  readPayment,
  type SignedPayment,
  X402_VERSION,
} from "./quote.ts";

export interface PaymentsOptions extends QuoteOptions {
  readonly x402: X402;
  readonly reserve: Reserve;
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
export type X402 = typeof import("@x402/core/http") & typeof import("@x402/core/types");

/** Loads the package. Rejects if it is not installed. */
export const loadX402 = async (): Promise<X402> => {
  try {
    return { ...(await import("@x402/core/http")), ...(await import("@x402/core/types")) };
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

/** Makes a payment usable again. Never rejects: if the store fails, the reservation ends when the payment expires. */
type Release = () => Promise<void>;

/** Reserves a payment until it expires. Returns undefined if another request has it. Rejects if the store does not respond. */
export type Reserve = (payment: Pick<SignedPayment, "id" | "seconds">) => Promise<Release | undefined>;

/** Returns reservations of this process alone. */
export const localReservations = (): Reserve => {
  const reserved = new Set<string>();
  return async ({ id, seconds }) => {
    if (reserved.has(id)) {
      return undefined;
    }
    reserved.add(id);
    const timer = setTimeout(() => reserved.delete(id), seconds * 1_000).unref();
    return async () => {
      clearTimeout(timer);
      reserved.delete(id);
    };
  };
};

/** One request with its price. */
interface Sale extends PayableRequest {
  readonly quote: Quote;
}

interface PaidSale extends Sale {
  readonly payment: SignedPayment;
}

/** A response of the facilitator, or the package's error of a refusal, whose members are not checked. */
type FacilitatorAnswer = Partial<VerifyResponse & SettleResponse>;

const RETRY_AFTER_SECONDS = 5;
/** x402: the transfer was sent and is not mined yet. */
const PENDING = "settlement_pending";
const OVERLOADED = "payments are not available: too many paid requests are in progress";
const NO_OUTCOME =
  "the facilitator did not confirm the payment: it may be charged. Read authorizationState of the token when the payment has expired";
/** Browsers show scripts the headers of the protocol then. */
const EXPOSED = ["Access-Control-Expose-Headers", "PAYMENT-REQUIRED, PAYMENT-RESPONSE"] as const;
/** Other texts of the facilitator are not repeated to a client: they may name its own nodes. */
const REASON = /^[\w.: -]{1,100}$/;

/** Sells requests to clients without a key: quotes a price, verifies the payment, serves the request, settles the payment. */
export class Payments {
  readonly #options: PaymentsOptions;
  readonly #quote: ReturnType<typeof createQuotes>;
  readonly #verifier: ReturnType<typeof facilitatorClient>;
  readonly #settler: ReturnType<typeof facilitatorClient>;
  #inProgress = 0;
  #isFailing = false;

  constructor(options: PaymentsOptions) {
    const { facilitator } = options.payment;
    this.#options = options;
    this.#quote = createQuotes(options);
    this.#verifier = facilitatorClient(options.x402, facilitator, facilitator.timeoutMs);
    this.#settler = facilitatorClient(options.x402, facilitator, facilitator.settleTimeoutMs);
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
    const quote = this.#quote(request.body, request.chain);
    if (quote === undefined) {
      return serve(false);
    }
    const sale = { ...request, quote };
    const header = request.inbound.received.headers["payment-signature"];
    if (typeof header !== "string") {
      throw this.#refuse(sale, "unpaid", "payment required");
    }
    const payment = readPayment(decode(this.#options.x402, header), quote.required);
    if (typeof payment === "string") {
      throw this.#refuse(sale, "invalid", payment);
    }
    if (this.#inProgress >= this.#options.payment.facilitator.maxConcurrent) {
      this.#count("unavailable");
      throw unavailable(OVERLOADED, RETRY_AFTER_SECONDS);
    }
    this.#inProgress++;
    try {
      return await this.#sell({ ...sale, payment }, () => serve(quote.isWrite));
    } finally {
      this.#inProgress--;
    }
  }

  /** Releases the payment if it is not charged. Once a settlement is sent, no other request can use it. */
  async #sell<R extends PayableResponse>(sale: PaidSale, serve: () => Awaitable<R>): Promise<R> {
    const { inbound, quote } = sale;
    const release = await this.#reserve(sale);
    let served: R;
    try {
      await this.#verify(sale);
      served = await this.#serve(sale, serve);
    } catch (error) {
      await release();
      throw error;
    }
    // A write that a node accepted is settled, whether or not its client waits for the response.
    const isLeft = inbound.signal.aborted && !quote.isWrite;
    const uncharged = served.errors?.find((error) => !isCharged(error));
    if (!isLeft && uncharged === undefined) {
      return { ...served, headers: await this.#settle(sale) };
    }
    await release();
    this.#count(isLeft ? "left" : "failed");
    if (uncharged !== undefined && quote.isBatch) {
      throw unchargedBatch(uncharged);
    }
    return served;
  }

  async #reserve(sale: PaidSale): Promise<Release> {
    const release = await this.#options.reserve(sale.payment).catch(() => {
      // The store counts and logs its failures.
      throw this.#noAnswer("the store of payments");
    });
    if (release === undefined) {
      throw this.#refuse(sale, "replayed", "the payment was already used");
    }
    return release;
  }

  async #verify(sale: PaidSale): Promise<void> {
    const answer = await this.#ask("verify", sale);
    if (answer === undefined) {
      throw this.#noAnswer("the facilitator");
    }
    if (!answer.isValid) {
      throw this.#refuse(sale, "invalid", `the payment is not valid: ${reasonOf(answer.invalidReason)}`);
    }
  }

  /** Returns the whole response in memory. */
  async #serve<R extends PayableResponse>({ inbound, quote }: PaidSale, serve: () => Awaitable<R>): Promise<R> {
    try {
      inbound.signal.throwIfAborted();
      const response = await serve();
      // The memory of a client that has disconnected is released, and counts nothing more.
      const memory = quote.isWrite ? undefined : inbound.memory;
      return { ...response, chunks: await collect(response.chunks, memory) };
    } catch (error) {
      this.#count(inbound.signal.aborted ? "left" : "failed");
      throw error;
    }
  }

  /** Settles the payment. Returns the headers of its receipt. */
  async #settle(sale: PaidSale): Promise<string[]> {
    const { payment: options, telemetry, x402 } = this.#options;
    const { chain, payment, quote } = sale;
    const { amount, network } = quote.required;
    const answer = await this.#ask("settle", sale);
    if (answer === undefined || answer.errorReason === PENDING) {
      telemetry.log.warn({ chain, payment: payment.id }, "a settlement has no outcome");
      this.#count("unknown");
      throw unavailable(NO_OUTCOME, RETRY_AFTER_SECONDS);
    }
    const { success = false, transaction = "" } = answer;
    const settled = { success, transaction, network, payer: payment.payer };
    if (!success) {
      const errorReason = reasonOf(answer.errorReason);
      const receipt = x402.encodePaymentResponseHeader({ ...settled, errorReason });
      throw this.#refuse(sale, "unsettled", `the payment was not settled: ${errorReason}`, receipt);
    }
    this.#count("paid");
    telemetry.metrics.paidTokens.inc(Number(amount) / 10 ** options.asset.decimals);
    telemetry.log.info({ chain, payer: payment.payer, amount, transaction }, "a payment was settled");
    return ["PAYMENT-RESPONSE", x402.encodePaymentResponseHeader(settled), ...EXPOSED];
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
  #refuse({ chain, inbound, quote, target }: Sale, result: PaymentResult, message: string, receipt?: string) {
    const { payment, telemetry, x402 } = this.#options;
    this.#count(result);
    if (result !== "unpaid") {
      inbound.caller.charge?.(1, "payment");
      telemetry.log.debug({ chain, result, reason: message }, "a payment was refused");
    }
    const { publicUrl = `http://${inbound.received.headers.host ?? "localhost"}` } = payment;
    const [path = "/"] = target.split("?", 1);
    const url = `${publicUrl.replace(/\/+$/, "")}${path}`;
    const challenge: PaymentRequired = {
      x402Version: X402_VERSION,
      error: message,
      resource: { url, description: "JSON-RPC", mimeType: "application/json" },
      accepts: [quote.required],
    };
    const required = ["PAYMENT-REQUIRED", x402.encodePaymentRequiredHeader(challenge)];
    const response = receipt === undefined ? [] : ["PAYMENT-RESPONSE", receipt];
    const cacheControl = ["Cache-Control", x402.PAYMENT_REQUIRED_CACHE_CONTROL];
    return new PaymentError(message, challenge, [...required, ...cacheControl, ...EXPOSED, ...response]);
  }

  /** Creates the error of a facilitator, or of a store, that does not answer. The client keeps its payment. */
  #noAnswer(part: string): RpcError {
    this.#count("unavailable");
    return unavailable(
      `payments are not available: ${part} does not answer, and nothing was charged`,
      RETRY_AFTER_SECONDS,
    );
  }

  #count(result: PaymentResult): void {
    this.#options.telemetry.metrics.payments.inc({ result });
  }
}

/** Returns undefined for a header that is not JSON in Base64. */
const decode = ({ decodePaymentSignatureHeader }: X402, header: string): unknown => {
  try {
    return decodePaymentSignatureHeader(header);
  } catch {
    return undefined;
  }
};

const reasonOf = (reason: string | undefined): string =>
  reason !== undefined && REASON.test(reason) ? reason : "the facilitator gave no reason";

/** Returns the error instead of a batch. Its other results are not sent, because nobody paid for them. */
const unchargedBatch = ({ code, message, status, retryAfterSeconds }: RpcError): RpcError =>
  new RpcError(code, `a call of the batch failed, and nothing was charged: ${message}`, { status, retryAfterSeconds });

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
