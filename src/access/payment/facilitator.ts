import type * as Http from "@x402/core/http";
import type * as Schemas from "@x402/core/schemas";
import type * as Types from "@x402/core/types";
import type { PaymentPayload, PaymentRequirements, SettleResponse } from "@x402/core/types";
import { connectionFault } from "../../core/connectionFault.ts";
import { type RpcError, unavailable } from "../../jsonrpc/rpcError.ts";
import { FairGate } from "../../limits/fairGate.ts";
import type { QueueOwner } from "../../limits/fairQueue.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";

export interface FacilitatorOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Deadline of a verification. */
  readonly timeoutMs: number;
  /** Deadline of one attempt to settle. */
  readonly settleTimeoutMs: number;
  /** Verifications at a time, and settlements at a time. */
  readonly maxConcurrent: number;
}

/** The parts of the x402 package that a server needs. */
export type X402 = Pick<
  typeof Http,
  | "HTTPFacilitatorClient"
  | "PAYMENT_REQUIRED_CACHE_CONTROL"
  | "decodePaymentSignatureHeader"
  | "encodePaymentRequiredHeader"
  | "encodePaymentResponseHeader"
> &
  Pick<typeof Schemas, "parsePaymentPayload"> &
  Pick<typeof Types, "SettleError" | "VerifyError">;

type FacilitatorClient = InstanceType<X402["HTTPFacilitatorClient"]>;

/** The version of the protocol. */
export const X402_VERSION = 2;

/** Creates the package's client of a facilitator, whose requests have this deadline. */
export const createFacilitatorClient = (
  { HTTPFacilitatorClient }: Pick<X402, "HTTPFacilitatorClient">,
  { url, headers }: Pick<FacilitatorOptions, "url" | "headers">,
  timeoutMs: number,
): FacilitatorClient => {
  const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers });
  return new HTTPFacilitatorClient({ url, timeoutMs, createAuthHeaders });
};

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

/** A payment and the terms of its request. */
export interface Payable {
  readonly payload: PaymentPayload;
  readonly required: PaymentRequirements;
}

/**
 * `unknown`: the facilitator did not answer, or refused only after an attempt without an answer. The payment may be settled.
 * `disconnected`: the client disconnected before its turn, and nothing was sent.
 */
export type Settlement =
  | { readonly kind: "settled" | "failed"; readonly response: SettleResponse }
  | { readonly kind: "unknown" }
  | { readonly kind: "disconnected" };

type Operation = "verify" | "settle";

/** Verifications that wait for their turn. */
const MAX_WAITING = 1_000;
/** Settlements that wait, for each that runs. More of them could wait until their payments expire. */
const WAITING_PER_SETTLEMENT = 8;
/**
 * The token transfers one authorization once, so that a settlement without an answer is sent again.
 * If the first attempt settled, a facilitator may refuse the second: the nonce is used.
 */
const SETTLE_ATTEMPTS = 2;
const RETRY_AFTER_SECONDS = 5;
/** x402: the transfer was sent and is not mined yet. */
const PENDING = "settlement_pending";
const SERVER_FAULT = 500;
const OVERLOADED = "payments are not available: too many payments wait for the facilitator";

/** Other texts of the facilitator are not repeated to a client. */
const REASON = /^[\w.: -]{1,100}$/;
const reasonOf = (reason: string | undefined): string =>
  reason !== undefined && REASON.test(reason) ? reason : "the facilitator gave no reason";

/** Creates the error of a request that came while too many settlements wait. */
export const paymentsOverloaded = (): RpcError => unavailable(OVERLOADED, RETRY_AFTER_SECONDS);

/** Creates the error of a facilitator, or of a store, that does not answer. The client keeps its payment. */
export const paymentsUnavailable = (part: string): RpcError =>
  unavailable(`payments are not available: ${part} does not answer, and nothing was charged`, RETRY_AFTER_SECONDS);

/** Creates the error of a settlement without an outcome. */
export const paymentOpen = (): RpcError =>
  unavailable(
    "the facilitator did not confirm the payment: send the same request with the same payment again. It is charged once",
    RETRY_AFTER_SECONDS,
  );

/** Other texts of a facilitator may name its own nodes. */
const forClient = ({ success, transaction, network, payer, amount }: SettleResponse): SettleResponse => ({
  ...{ success, transaction, network },
  ...(payer !== undefined && { payer }),
  ...(amount !== undefined && { amount }),
});

/** Verifies and settles payments. */
export class Facilitator {
  readonly #x402: X402;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly #verifier: FacilitatorClient;
  readonly #settler: FacilitatorClient;
  readonly #verifications: FairGate;
  /** Refuses nothing: each has a verified payment, and a response that is ready. New requests are refused instead. */
  readonly #settlements: FairGate;
  readonly #maxWaitingSettlements: number;
  #isFailing = false;

  constructor(options: FacilitatorOptions, x402: X402, telemetry: Pick<Telemetry, "log" | "metrics">) {
    const { timeoutMs, settleTimeoutMs, maxConcurrent: max } = options;
    this.#x402 = x402;
    this.#telemetry = telemetry;
    this.#verifier = createFacilitatorClient(x402, options, timeoutMs);
    this.#settler = createFacilitatorClient(x402, options, settleTimeoutMs);
    this.#verifications = new FairGate({ max, maxWaiting: MAX_WAITING, overloaded: OVERLOADED });
    this.#settlements = new FairGate({ max, overloaded: OVERLOADED });
    this.#maxWaitingSettlements = max * WAITING_PER_SETTLEMENT;
  }

  /** Whether the queue of settlements is full: no further request may be served. */
  get isOverloaded(): boolean {
    return this.#settlements.waiting >= this.#maxWaitingSettlements;
  }

  /** Returns why a payment is not valid, or undefined. Rejects with RpcError (503) if the facilitator does not answer. */
  verify({ payload, required }: Payable, owner: QueueOwner): Promise<string | undefined> {
    return this.#verifications.run(owner, async () => {
      try {
        const { isValid, invalidReason } = await this.#timed("verify", () => this.#verifier.verify(payload, required));
        return isValid ? undefined : reasonOf(invalidReason);
      } catch (error) {
        if (error instanceof this.#x402.VerifyError && error.statusCode < SERVER_FAULT) {
          return reasonOf(error.invalidReason);
        }
        this.#recordFailure("verify", error);
        throw paymentsUnavailable("the facilitator");
      }
    });
  }

  /** Settles a payment, unless `signal` is aborted before its turn. Never rejects. */
  settle(payable: Payable, owner: QueueOwner, signal?: AbortSignal): Promise<Settlement> {
    return this.#settlements.run(owner, async () => {
      if (signal?.aborted) {
        return { kind: "disconnected" };
      }
      for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
        const settlement = await this.#trySettle(payable);
        if (settlement.kind === "settled" || (settlement.kind === "failed" && attempt === 0)) {
          return settlement;
        }
      }
      return { kind: "unknown" };
    });
  }

  async #trySettle({ payload, required }: Payable): Promise<Settlement> {
    let response: SettleResponse;
    try {
      response = await this.#timed("settle", () => this.#settler.settle(payload, required));
    } catch (error) {
      if (!(error instanceof this.#x402.SettleError) || error.statusCode >= SERVER_FAULT) {
        this.#recordFailure("settle", error);
        return { kind: "unknown" };
      }
      const { errorReason, transaction, payer } = error;
      response = {
        success: false,
        transaction: transaction ?? "",
        network: required.network,
        ...(errorReason !== undefined && { errorReason }),
        ...(payer !== undefined && { payer }),
      };
    }
    if (response.success) {
      return { kind: "settled", response: forClient(response) };
    }
    return response.errorReason === PENDING
      ? { kind: "unknown" }
      : { kind: "failed", response: { ...forClient(response), errorReason: reasonOf(response.errorReason) } };
  }

  async #timed<T>(operation: Operation, send: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const result = await send();
    this.#telemetry.metrics.facilitatorSeconds.observe({ operation }, (performance.now() - startMs) / 1_000);
    if (this.#isFailing) {
      this.#isFailing = false;
      this.#telemetry.log.info("the facilitator answers again");
    }
    return result;
  }

  /** Logs the first failure in a row. The text of the error may quote the facilitator's URL. */
  #recordFailure(operation: Operation, error: unknown): void {
    const { log, metrics } = this.#telemetry;
    metrics.facilitatorFailures.inc({ operation });
    if (!this.#isFailing) {
      log.warn({ operation, reason: connectionFault(error) }, "the facilitator does not answer");
    }
    this.#isFailing = true;
  }
}
