import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { HeadTracker } from "../heads/headTracker.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { StateReads } from "../state/stateReads.ts";
import type { RemoteStateRead, StateOutcome } from "./chainProtocol.ts";

/** A serving process sends the response of a node within this time. */
const RESPONSE_TIMEOUT_MS = 40_000;

interface OpenRead {
  resolve(response: RpcResponse): void;
  reject(error: Error): void;
}

const expired = (): Error => unavailable("no response of a node came");

/** Answers reads of serving processes from the known state. Their responses of nodes enter it. */
export class HostedState {
  readonly #reads: () => Pick<StateReads, "request"> | undefined;
  readonly #heads: Pick<HeadTracker, "current">;
  readonly #open = new Map<number, OpenRead>();
  #lastAsked = 0;

  constructor(reads: () => Pick<StateReads, "request"> | undefined, heads: Pick<HeadTracker, "current">) {
    this.#reads = reads;
    this.#heads = heads;
  }

  async read({ method, key, block, bypassCache }: RemoteStateRead): Promise<StateOutcome> {
    const reads = this.#reads();
    const heads = this.#heads.current();
    if (reads === undefined || heads === undefined) {
      return {};
    }
    const context: RequestContext = {
      view: { heads },
      signal: new AbortController().signal,
      deadlineMs: performance.now() + RESPONSE_TIMEOUT_MS,
      clientId: "forebay",
      bypassCache,
    };
    const outcome = Promise.withResolvers<StateOutcome>();
    const ask = (): Promise<RpcResponse> => {
      this.#lastAsked++;
      const asked = this.#lastAsked;
      outcome.resolve({ asked });
      return this.#response(asked);
    };
    Promise.try(() => reads.request({ method, key, block, context }, ask)).then(
      ({ body }) => outcome.resolve(body instanceof Uint8Array ? { body } : {}),
      () => outcome.resolve({}),
    );
    return outcome.promise;
  }

  /** Takes the response of a node. Undefined: the node did not respond. */
  enter(asked: number, response: RpcResponse | undefined): void {
    const read = this.#open.get(asked);
    this.#open.delete(asked);
    if (response === undefined) {
      read?.reject(expired());
    } else {
      read?.resolve(response);
    }
  }

  #response(asked: number): Promise<RpcResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
    this.#open.set(asked, { resolve, reject });
    const timer = setTimeout(() => this.enter(asked, undefined), RESPONSE_TIMEOUT_MS);
    timer.unref();
    return promise.finally(() => clearTimeout(timer));
  }
}
