import { type Context, ownContext } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { HeadTracker } from "../heads/headTracker.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { type AskCall, type CallCache, UNPROVEN } from "../state/calls/callCache.ts";
import type { StateReads } from "../state/stateReads.ts";
import type { EnteredProof, RemoteAnswerCall, RemoteRead, RemoteStateRead, StateOutcome } from "./chainProtocol.ts";

/** `followed`: reads can be answered from now on. `dropped`: known values or answers are dropped. */
export type StateChange = "followed" | "dropped";

/** The known state of one chain in the main process. */
export interface ChainKnownState {
  readonly reads: Pick<StateReads, "request" | "findProven" | "beginProof" | "forget"> | undefined;
  readonly callCache: Pick<CallCache, "request"> | undefined;
  /** Calls the listener at each change. Returns the function that ends this. */
  subscribe(listener: (change: StateChange) => void): () => void;
}

/** A serving process sends the response of a node within this time. */
const RESPONSE_TIMEOUT_MS = 40_000;
/** Nothing here is aborted: the serving process asks the nodes. */
const NEVER_ABORTED = new AbortController().signal;

interface OpenRead {
  /** What is known once the response is entered. */
  readonly answer: Promise<StateOutcome>;
  resolve(response: RpcResponse): void;
  reject(error: Error): void;
}

type Request = (context: Context, ask: AskCall) => Awaitable<RpcResponse>;

const expired = (): Error => unavailable("no response of a node came");

/** Only what is known or proven is an answer: not the response that a node gave to another process. */
const toOutcome = (response: RpcResponse): StateOutcome => {
  const { body, proof, status } = response;
  if (response === UNPROVEN) {
    return { isUnproven: true };
  }
  return body instanceof Uint8Array && (status.hit === "state" || proof === "proven") ? { body, proof } : {};
};

/** Answers reads and calls of serving processes from what is known. Their responses of nodes become known too. */
export class HostedState {
  readonly #known: Pick<ChainKnownState, "reads" | "callCache">;
  readonly #heads: Pick<HeadTracker, "current">;
  readonly #open = new Map<number, OpenRead>();
  #lastAsked = 0;

  constructor(known: Pick<ChainKnownState, "reads" | "callCache">, heads: Pick<HeadTracker, "current">) {
    this.#known = known;
    this.#heads = heads;
  }

  read(read: RemoteStateRead): Awaitable<StateOutcome> {
    const { reads } = this.#known;
    if (read.onlyProven) {
      return this.#findProven(read);
    }
    return this.#request(read, reads && ((context, ask) => reads.request({ ...read, context }, ask)));
  }

  call(call: RemoteAnswerCall): Awaitable<StateOutcome> {
    const { callCache } = this.#known;
    return this.#request(call, callCache && ((context, ask) => callCache.request({ ...call, context }, ask)));
  }

  /** Takes the response of a node, and returns the answer. Undefined: the node did not respond, or its response is too large. */
  enter(asked: number, response: RpcResponse | undefined): Awaitable<StateOutcome> {
    const read = this.#open.get(asked);
    this.#open.delete(asked);
    if (response === undefined) {
      read?.reject(expired());
    } else {
      read?.resolve(response);
    }
    return read?.answer ?? {};
  }

  /** Takes values that a serving process has verified. */
  enterProof({ values, block }: EnteredProof): void {
    this.#known.reads?.beginProof()(values, block);
  }

  async #findProven(read: RemoteStateRead): Promise<StateOutcome> {
    const context = this.#contextOf(read);
    const found = context && (await this.#known.reads?.findProven({ ...read, context }));
    return found === undefined ? {} : toOutcome(found);
  }

  /** Returns undefined if the block is not in the chain. */
  #contextOf({ block, clientId, bypassCache, requiresProof }: RemoteRead): Context | undefined {
    const heads = this.#heads.current();
    if (heads?.at(block.number)?.hash !== block.hash) {
      return undefined;
    }
    const deadlineMs = performance.now() + RESPONSE_TIMEOUT_MS;
    return ownContext(clientId, { heads }, { signal: NEVER_ABORTED, deadlineMs, bypassCache, requiresProof });
  }

  /** Returns a known value without a promise. */
  #request(read: RemoteRead, request: Request | undefined): Awaitable<StateOutcome> {
    const context = this.#contextOf(read);
    if (request === undefined || context === undefined) {
      return {};
    }
    let asked: StateOutcome | undefined;
    const outcome = Promise.withResolvers<StateOutcome>();
    const answer = Promise.withResolvers<StateOutcome>();
    const ask: AskCall = (ending) => {
      this.#lastAsked++;
      asked = { asked: this.#lastAsked, isFresh: ending !== undefined };
      outcome.resolve(asked);
      return this.#response(this.#lastAsked, answer.promise);
    };
    const response = request(context, ask);
    if (!(response instanceof Promise)) {
      return toOutcome(response);
    }
    const settle = (found: StateOutcome): void => {
      outcome.resolve(found);
      answer.resolve(found);
    };
    response.then(
      (found) => settle(toOutcome(found)),
      () => settle({}),
    );
    return asked ?? outcome.promise;
  }

  #response(asked: number, answer: OpenRead["answer"]): Promise<RpcResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
    this.#open.set(asked, { answer, resolve, reject });
    const timer = setTimeout(() => void this.enter(asked, undefined), RESPONSE_TIMEOUT_MS);
    timer.unref();
    return promise.finally(() => clearTimeout(timer));
  }
}
