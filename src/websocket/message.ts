import type { AuthenticatedCaller } from "../access/access.ts";
import type { InboundRequest, Received, RequestProgress } from "../core/context.ts";
import type { LazySignal } from "../core/lazySignal.ts";
import type { RequestMemory } from "../http/requestMemory.ts";

interface MessageOptions {
  readonly received: Received;
  readonly caller: AuthenticatedCaller;
  readonly memory: RequestMemory | undefined;
  /** Aborted when the connection is closed. */
  readonly lazySignal: LazySignal;
}

/** One message of a client, until its response is sent. */
export class Message implements InboundRequest, RequestProgress {
  readonly received: Received;
  readonly caller: AuthenticatedCaller;
  readonly memory: RequestMemory | undefined;
  readonly lazySignal: LazySignal;
  hasNodePlace = false;
  stateReads = 0;
  spentUnits = 0;
  directUnits = 0;
  failedPending: RequestProgress["failedPending"];
  readonly #afterwards: (() => void)[] = [];

  constructor({ received, caller, memory, lazySignal }: MessageOptions) {
    this.received = received;
    this.caller = caller;
    this.memory = memory;
    this.lazySignal = lazySignal;
  }

  /** Created on first use, because a cache hit never needs it. */
  get signal(): AbortSignal {
    return this.lazySignal.signal;
  }

  get progress(): this {
    return this;
  }

  afterResponse(then: () => void): void {
    this.#afterwards.push(then);
  }

  /** Runs what waits for the response. */
  end(): void {
    for (const then of this.#afterwards) {
      then();
    }
  }
}
