import type { NodeError, NodeErrorKind } from "../core/node.ts";
import { TokenBucket } from "../limits/tokenBucket.ts";
import { isFault } from "./errorKind.ts";

/** A limit that was lowered is lowered again only after this time: the requests in flight show nothing new. */
const LOWERED_MS = 1_000;
/** A node with fewer requests in flight is not busy: fewer would not help it. */
const LOADED_REQUESTS = 2;

/**
 * The HTTP requests that one node gets at a time. The limit is halved if the node is overloaded. It grows by one with each round of
 * responses (additive increase, multiplicative decrease: RFC 5681, section 3.1).
 */
export class RequestLimit {
  readonly #max: number;
  readonly #nowMs: () => number;
  #limit: number;
  #loweredMs = Number.NEGATIVE_INFINITY;

  constructor(max: number, nowMs: () => number = () => performance.now()) {
    this.#max = max;
    this.#nowMs = nowMs;
    this.#limit = max;
  }

  /** At least 1. */
  get requests(): number {
    return Math.floor(this.#limit);
  }

  /** Records a sign of overload, with this number of requests in flight. */
  recordOverload(inFlight: number): void {
    const nowMs = this.#nowMs();
    if (inFlight < LOADED_REQUESTS || nowMs - this.#loweredMs < LOWERED_MS) {
      return;
    }
    this.#loweredMs = nowMs;
    this.#limit = Math.max(1, Math.min(this.#limit, inFlight) / 2);
  }

  recordResponse(): void {
    if (this.#limit < this.#max) {
      this.#limit = Math.min(this.#max, this.#limit + 1 / this.#limit);
    }
  }
}

/** A refusal is forgotten after this time, because only one machine of several may have refused. */
const REFUSED_MS = 600_000;
/** The calls of a node that was slow, or limited the rate, are spread over more requests for this time. */
const LATE_MS = 60_000;
/** After a batch without a response, the node gets single calls for this time: one call may have caused the failure. */
const FAILED_MS = 1_000;

const NO_BATCHES = /batch.*(not (supported|allowed|enabled|available)|unsupported|disabled|forbidden)/i;

/** The errors of a node that refuses its user, or that has ended the request. */
const NO_REFUSALS: ReadonlySet<NodeErrorKind> = new Set(["rateLimited", "billing", "unauthorized", "cancelled"]);

/** Whether the node rejected the batch as such. A node that is down, slow, or rejects its user did not. */
export const isBatchRefusal = (error: NodeError): boolean => {
  const { kind } = error;
  return !NO_REFUSALS.has(kind) && (kind === "invalidAnswer" || !isFault(error));
};

/** The number of calls that one node accepts in one HTTP request: at most the configured number, and what was learned. */
export class BatchLimit {
  readonly #maxCalls: number;
  readonly #nowMs: () => number;
  #learned = Number.POSITIVE_INFINITY;
  #learnedUntilMs = 0;
  #singleUntilMs = 0;

  constructor(maxCalls: number, nowMs: () => number = () => performance.now()) {
    this.#maxCalls = maxCalls;
    this.#nowMs = nowMs;
  }

  /** At least 1. */
  get calls(): number {
    const nowMs = this.#nowMs();
    if (nowMs < this.#singleUntilMs) {
      return 1;
    }
    return nowMs < this.#learnedUntilMs ? Math.min(this.#learned, this.#maxCalls) : this.#maxCalls;
  }

  /** Records that the node refused a batch of this size. */
  recordRefusal(size: number, { message }: NodeError): void {
    this.#learn(NO_BATCHES.test(message) ? 1 : size >> 1, REFUSED_MS);
  }

  /** Records that a batch of this size was late, or that the node limited the rate for it. */
  recordLate(size: number): void {
    this.#learn(size >> 1, LATE_MS);
  }

  /** Records that a batch got no response. */
  recordFailure(): void {
    this.#singleUntilMs = this.#nowMs() + FAILED_MS;
  }

  #learn(calls: number, forMs: number): void {
    const nowMs = this.#nowMs();
    const current = nowMs < this.#learnedUntilMs ? this.#learned : Number.POSITIVE_INFINITY;
    this.#learned = Math.max(1, Math.min(current, calls));
    this.#learnedUntilMs = Math.max(this.#learnedUntilMs, nowMs + forMs);
  }
}

const SECOND_MS = 1_000;

/** The calls that one node gets in a second. They are refilled evenly, up to those of one second. */
export class CallRate {
  readonly #nowMs: () => number;
  readonly #msPerCall: number;
  /** Undefined without a limit. */
  readonly #calls: TokenBucket | undefined;
  #refilledMs: number;

  /** There is no limit if `requestsPerSecond` is undefined. */
  constructor(requestsPerSecond: number | undefined, nowMs: () => number = () => performance.now()) {
    const burst = Math.max(1, requestsPerSecond ?? 0);
    this.#nowMs = nowMs;
    this.#refilledMs = nowMs();
    this.#msPerCall = SECOND_MS / (requestsPerSecond ?? Number.POSITIVE_INFINITY);
    this.#calls = requestsPerSecond === undefined ? undefined : new TokenBucket(burst, burst);
  }

  /** The calls that may be sent now. */
  get calls(): number {
    if (this.#calls === undefined) {
      return Number.POSITIVE_INFINITY;
    }
    const nowMs = this.#nowMs();
    this.#calls.earn((nowMs - this.#refilledMs) / this.#msPerCall);
    this.#refilledMs = nowMs;
    return Math.max(0, Math.floor(this.#calls.tokens));
  }

  /** The time until one call may be sent, in milliseconds. */
  get waitMs(): number {
    return this.calls > 0 || this.#calls === undefined ? 0 : (1 - this.#calls.tokens) * this.#msPerCall;
  }

  spend(calls: number): void {
    this.#calls?.spend(calls);
  }
}
