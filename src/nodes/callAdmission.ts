import { setTimeout as sleep } from "node:timers/promises";
import type { CallScope } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { TokenBucket } from "../limits/tokenBucket.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import type { NodeState } from "./nodeState.ts";

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

/** The periods of a window. */
const PERIODS = 8;
/** A wait is predicted from the answers of this multiple of the longest wait. */
const WINDOW_FACTOR = 2;

/** The calls that one node gets now. */
export interface NodeLoad {
  /** Whether a further call waits for a place. */
  readonly isFull: boolean;
  /** HTTP requests in flight. */
  readonly inFlight: number;
}

interface Period {
  readonly startMs: number;
  answered: number;
}

/**
 * Predicts whether a call of a client would wait too long for one node: its waiting calls divided by its rate of answers.
 * The rate is that of the time in which the node was full. A node with a free place refuses nothing.
 * Each client may have its share of the calls that the node answers in the longest wait.
 */
export class CallAdmission {
  readonly #load: NodeLoad;
  readonly #limit: Pick<RequestLimit, "requests">;
  readonly #maxWaitMs: number;
  readonly #nowMs: () => number;
  readonly #byClient = new Map<string, number>();
  #calls = 0;
  /** Calls that wait for the budget of the node. */
  #delayed = 0;
  /** The periods since the node is full, the newest last. Empty while it is not. */
  #periods: Period[] = [];

  /** `limit`: the HTTP requests that the node gets at a time. `maxWaitMs`: a call that would wait longer is refused. */
  constructor(
    load: NodeLoad,
    limit: Pick<RequestLimit, "requests">,
    maxWaitMs: number,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#load = load;
    this.#limit = limit;
    this.#maxWaitMs = maxWaitMs;
    this.#nowMs = nowMs;
  }

  /** Whether a call of this client, with this time to its deadline, should not wait. */
  isRefused(clientId: string, remainingMs: number): boolean {
    if (this.#delayed === 0 && !this.#load.isFull) {
      return false;
    }
    this.#observe();
    const limitMs = Math.min(this.#maxWaitMs, remainingMs);
    const waiting = this.#waiting;
    const answerable = this.#answersPerMs * limitMs;
    if (waiting <= answerable) {
      return false;
    }
    const share = (this.#calls - waiting + answerable) / Math.max(1, this.#byClient.size);
    return (this.#byClient.get(clientId) ?? 0) >= share;
  }

  /** Counts a call until `end`. */
  begin(clientId: string): void {
    this.#calls++;
    this.#byClient.set(clientId, (this.#byClient.get(clientId) ?? 0) + 1);
    this.#observe();
  }

  /** `isAnswered`: the node executed the call. A refusal, a broken connection and a deadline are no answers. */
  end(clientId: string, isAnswered: boolean): void {
    this.#calls--;
    const mine = (this.#byClient.get(clientId) ?? 0) - 1;
    if (mine > 0) {
      this.#byClient.set(clientId, mine);
    } else {
      this.#byClient.delete(clientId);
    }
    this.#observe();
    const period = this.#periods.at(-1);
    if (isAnswered && period !== undefined) {
      period.answered++;
    }
  }

  /** Counts a call that waits for the budget of the node, until `endDelay`. */
  beginDelay(clientId: string): void {
    this.#delayed++;
    this.begin(clientId);
  }

  endDelay(clientId: string): void {
    this.#delayed--;
    this.end(clientId, false);
  }

  /** Calls that wait here, or in the node behind others of their batches: each place serves one call. */
  get #waiting(): number {
    return this.#delayed + Math.max(0, this.#sent - this.#limit.requests);
  }

  get #sent(): number {
    return this.#calls - this.#delayed;
  }

  /** An upper bound: the calls in flight may be answered at any moment. Thus a wait is at most the time since the node is full. */
  get #answersPerMs(): number {
    const [first] = this.#periods;
    if (first === undefined) {
      return Number.POSITIVE_INFINITY;
    }
    const answered = this.#periods.reduce((sum, period) => sum + period.answered, 0);
    const calls = Math.max(answered + Math.min(this.#sent, this.#limit.requests), this.#calls);
    return calls / (this.#nowMs() - first.startMs);
  }

  /** Starts a window when the node is full, and ends it when less than half of its places are taken. */
  #observe(): void {
    const newest = this.#periods.at(-1);
    if (newest === undefined) {
      if (this.#delayed > 0 || this.#load.isFull) {
        this.#periods = [{ startMs: this.#nowMs(), answered: 0 }];
      }
      return;
    }
    if (this.#delayed === 0 && !this.#load.isFull && this.#load.inFlight < this.#limit.requests / 2) {
      this.#periods = [];
      return;
    }
    const nowMs = this.#nowMs();
    const windowMs = this.#maxWaitMs * WINDOW_FACTOR;
    if (nowMs - newest.startMs >= windowMs / PERIODS) {
      this.#periods.push({ startMs: nowMs, answered: 0 });
      this.#periods = this.#periods.filter(({ startMs }, index, all) => {
        const endMs = all[index + 1]?.startMs ?? nowMs;
        return endMs > nowMs - windowMs || startMs === nowMs;
      });
    }
  }
}

const SECOND_MS = 1000;

/** The calls that one node gets in a second. They are refilled evenly, up to those of one second. */
export class CallBudget {
  readonly #nowMs: () => number;
  readonly #msPerCall: number;
  /** Undefined without a limit. */
  readonly #calls: TokenBucket | undefined;
  readonly #state: Pick<NodeState, "pauseMs">;
  #refilledMs: number;

  /** There is no limit if `requestsPerSecond` is undefined. */
  constructor(
    requestsPerSecond: number | undefined,
    state: Pick<NodeState, "pauseMs">,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#state = state;
    const burst = Math.max(1, requestsPerSecond ?? 0);
    this.#nowMs = nowMs;
    this.#refilledMs = nowMs();
    this.#msPerCall = SECOND_MS / (requestsPerSecond ?? Number.POSITIVE_INFINITY);
    this.#calls = requestsPerSecond === undefined ? undefined : new TokenBucket(burst, burst);
  }

  /** The result that `take(1)` would have, without taking a call. */
  get delayMs(): number {
    return this.#delayMs(1);
  }

  /** Takes calls out of the budget and returns the milliseconds to wait before they may be sent. */
  take(calls: number): number {
    const delayMs = this.#delayMs(calls);
    this.#calls?.spend(calls);
    return delayMs;
  }

  #delayMs(calls: number): number {
    const nowMs = this.#nowMs();
    const { pauseMs } = this.#state;
    if (this.#calls === undefined) {
      return pauseMs;
    }
    this.#calls.earn((nowMs - this.#refilledMs) / this.#msPerCall);
    this.#refilledMs = nowMs;
    return Math.max(pauseMs, (calls - this.#calls.tokens) * this.#msPerCall);
  }
}

/** The client of a call that waits if the node is full. Calls of forebay itself have no connection, and never wait. */
const countedClient = ({ caller }: CallScope): string | undefined =>
  caller?.connection === undefined ? undefined : caller.clientId;

/** Decides when a call may be sent to one node: after the admission of its client's request, and within the node's budget. */
export class SendPermits {
  readonly #node: string;
  readonly #budget: CallBudget;
  readonly #admission: CallAdmission;
  readonly #health: NodeHealth;

  constructor(node: string, budget: CallBudget, admission: CallAdmission, health: NodeHealth) {
    this.#node = node;
    this.#budget = budget;
    this.#admission = admission;
    this.#health = health;
  }

  /** Returns the time until one call may be sent, in milliseconds, or the error of a call that may not be sent. */
  request(scope: CallScope): number | NodeError {
    if (performance.now() >= scope.deadlineMs) {
      return this.#lateError();
    }
    return this.#isAdmitted(scope) ? this.takeBudget(1, scope) : this.#overloadError();
  }

  /** Returns the time until the budget allows the calls, or an error if that is after the deadline. */
  takeBudget(calls: number, { deadlineMs }: CallScope): number | NodeError {
    const leftMs = deadlineMs - performance.now();
    if (leftMs <= 0) {
      return this.#lateError();
    }
    const { delayMs } = this.#budget;
    return delayMs > leftMs ? this.#budgetError(delayMs) : this.#budget.take(calls);
  }

  /** Waits for the budget. A call of a client counts as waiting. Resolves early if the client disconnects. */
  async wait(waitMs: number, scope: CallScope): Promise<void> {
    const client = countedClient(scope);
    if (client !== undefined) {
      this.#admission.beginDelay(client);
    }
    await sleep(waitMs, undefined, { signal: scope.signal }).catch(() => undefined);
    if (client !== undefined) {
      this.#admission.endDelay(client);
    }
  }

  /** Counts a call that is sent, until `end`. */
  begin(scope: CallScope): void {
    const client = countedClient(scope);
    if (client !== undefined) {
      this.#admission.begin(client);
    }
  }

  end(scope: CallScope, isAnswered: boolean): void {
    const client = countedClient(scope);
    if (client !== undefined) {
      this.#admission.end(client, isAnswered);
    }
  }

  /** Only the first call of a client's request can be refused: the others are part of work that was admitted. */
  #isAdmitted({ progress, caller, deadlineMs }: CallScope): boolean {
    if (progress === undefined || progress.hasNodePlace) {
      return true;
    }
    progress.hasNodePlace = !this.#admission.isRefused(caller?.clientId ?? "", deadlineMs - performance.now());
    return progress.hasNodePlace;
  }

  /** A call that is refused at once costs its client less than one that is answered too late. */
  #overloadError(): NodeError {
    this.#health.countRefusal();
    return new NodeError("overloaded", this.#node, "too many calls are waiting", {
      status: 503,
      retryAfterSeconds: 1,
    });
  }

  /** The call is not sent, so that the error says nothing about the node. */
  #lateError(): NodeError {
    return new NodeError("timeout", this.#node, "the deadline has passed", { status: 504 });
  }

  #budgetError(delayMs: number): NodeError {
    return new NodeError("rateLimited", this.#node, "the budget of calls is exhausted", {
      code: CODES.RATE_LIMITED,
      status: 429,
      retryAfterSeconds: Math.ceil(delayMs / 1000),
    });
  }
}
