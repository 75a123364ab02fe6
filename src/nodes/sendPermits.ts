import { setTimeout as sleep } from "node:timers/promises";
import { NodeError, type Reach } from "../core/node.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { Budget } from "./budget.ts";
import type { CallAdmission } from "./callAdmission.ts";

export interface SendPermitsOptions {
  /** The name of the node. */
  readonly name: string;
  readonly budget: Budget;
  readonly admission: CallAdmission;
  onRefused(): void;
}

/** The client of a call that waits if the node is full. Calls of forebay itself have no connection, and never wait. */
const countedClient = ({ caller }: Reach): string | undefined =>
  caller?.connection === undefined ? undefined : caller.clientId;

/** Decides when a call may be sent to one node: after the admission of its client's request, and within the node's budget. */
export class SendPermits {
  readonly #options: SendPermitsOptions;

  constructor(options: SendPermitsOptions) {
    this.#options = options;
  }

  /** Returns the time until one call may be sent, in milliseconds, or the error of a call that may not be sent. */
  request(reach: Reach): number | NodeError {
    return this.#isAdmitted(reach) ? this.takeBudget(1, reach) : this.#overloadError();
  }

  /** Returns the time until the budget allows the calls, or an error if that is after the deadline. */
  takeBudget(calls: number, { deadlineMs }: Reach): number | NodeError {
    const { budget } = this.#options;
    const { delayMs } = budget;
    return delayMs > deadlineMs - performance.now() ? this.#budgetError(delayMs) : budget.take(calls);
  }

  /** Waits for the budget. A call of a client counts as waiting. Resolves early if the client disconnects. */
  async wait(waitMs: number, reach: Reach): Promise<void> {
    const { admission } = this.#options;
    const client = countedClient(reach);
    if (client === undefined) {
      return this.waitForBudget(waitMs, reach);
    }
    admission.beginDelay(client);
    await this.waitForBudget(waitMs, reach);
    admission.endDelay(client);
  }

  /** Resolves early if the client disconnects. */
  async waitForBudget(waitMs: number, { signal }: Reach): Promise<void> {
    await sleep(waitMs, undefined, { signal }).catch(() => undefined);
  }

  /** Counts a call that is sent, until `end`. */
  begin(reach: Reach): void {
    const client = countedClient(reach);
    if (client !== undefined) {
      this.#options.admission.begin(client);
    }
  }

  end(reach: Reach, isAnswered: boolean): void {
    const client = countedClient(reach);
    if (client !== undefined) {
      this.#options.admission.end(client, isAnswered);
    }
  }

  /** Only the first call of a client's request can be refused: the others are part of work that was admitted. */
  #isAdmitted({ admission, caller, deadlineMs }: Reach): boolean {
    if (admission === undefined || admission.isAdmitted) {
      return true;
    }
    admission.isAdmitted = !this.#options.admission.isRefused(caller?.clientId ?? "", deadlineMs - performance.now());
    return admission.isAdmitted;
  }

  /** A call that is refused at once costs its client less than one that is answered too late. */
  #overloadError(): NodeError {
    const { name, onRefused } = this.#options;
    onRefused();
    return new NodeError("overloaded", name, "too many calls are waiting", {
      status: 503,
      retryAfterSeconds: 1,
    });
  }

  #budgetError(delayMs: number): NodeError {
    const { name } = this.#options;
    return new NodeError("rateLimited", name, "the budget of calls is exhausted", {
      code: CODES.RATE_LIMITED,
      status: 429,
      retryAfterSeconds: Math.ceil(delayMs / 1000),
    });
  }
}
