import type { Context } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import {
  type AskCall,
  type CacheableCall,
  type CallCache,
  MAX_KEY_CHARACTERS,
  UNPROVEN,
} from "../state/calls/callCache.ts";
import type { CallMethod } from "../state/calls/callRun.ts";
import type { StateMethod, StateRead, StateReads } from "../state/stateReads.ts";
import { resultWithin } from "../state/writeSetWaits.ts";
import type { MainChannel } from "./chainCopy.ts";
import type { RemoteRead, StateOutcome } from "./chainProtocol.ts";
import { KnownBodies } from "./knownBodies.ts";

export interface RemoteStateOptions {
  readonly chain: string;
  readonly main: MainChannel;
  /** Returns the number of the newest blocks whose state the main process may know. */
  readonly maxReadable: () => number;
  /** Called with each answer that the main process was not asked for. */
  onHit(method: StateMethod | CallMethod): void;
}

/** Larger responses are not sent to the main process. */
const MAX_ENTERED_BYTES = 131_072;

const isEntered = ({ body }: RpcResponse): boolean => body instanceof Uint8Array && body.length <= MAX_ENTERED_BYTES;

interface RemoteRequest {
  readonly method: StateMethod | CallMethod;
  readonly key: string;
  readonly block: StateRead["block"];
  readonly context: Context;
}

type AddAnswer = (answer: Pick<RpcResponse, "proof"> & { readonly body: Uint8Array }) => RpcResponse;

const requestOf = ({ key, ...read }: StateRead): RemoteRequest => ({ ...read, key: `${key.address}${key.slot ?? ""}` });

const remoteRead = ({ block, context }: Pick<StateRead, "block" | "context">): RemoteRead => {
  const { bypassCache, requiresProof, caller } = context;
  return { block, bypassCache, requiresProof, clientId: caller.clientId };
};

const nameOf = ({ method, key, block }: RemoteRequest): string => `${block.hash}${method}${key}`;

/** The known state of the main process. Answers that it gave for a block answer equal requests for this block here. */
export class RemoteState {
  readonly reads: Pick<StateReads, "request" | "findProven" | "beginProof" | "forget">;
  readonly callCache: Pick<CallCache, "request">;
  readonly #options: RemoteStateOptions;
  readonly #bodies = new KnownBodies();
  #drops = 0;

  constructor(options: RemoteStateOptions) {
    this.#options = options;
    this.reads = {
      request: (read, ask) => this.#read(read, ask),
      findProven: (read) => this.#findProven(read),
      beginProof: () => this.#beginProof(),
      forget: () => {
        this.drop();
        options.main.notify("forgetState", { chain: options.chain });
      },
    };
    this.callCache = { request: (call, ask) => this.#call(call, ask) };
  }

  /** Forgets all answers, because the main process has dropped what it knew. */
  drop(): void {
    this.#drops++;
    this.#bodies.clear();
  }

  #read(read: StateRead, ask: AskCall): Awaitable<RpcResponse> {
    return this.#answer(requestOf(read), ask, () => this.#readState(read, false));
  }

  /** Returns a value that the main process has proven. It waits for the block's write set. */
  async #findProven(read: StateRead): Promise<RpcResponse | undefined> {
    const request = requestOf(read);
    const { method, block, context } = request;
    if (context.bypassCache || context.noCache || this.#isOld(request)) {
      return undefined;
    }
    const name = nameOf(request);
    const known = this.#bodies.get(name);
    if (known?.proof === "proven") {
      this.#options.onHit(method);
      return known;
    }
    const add = this.#bodies.beginAdd(name);
    const { body, proof } = await this.#readState(read, true);
    return body && add({ body, block, proof });
  }

  /** Returns the function that sends the values of a proof, requested from now on, to the main process. */
  #beginProof(): ReturnType<StateReads["beginProof"]> {
    const { chain, main } = this.#options;
    const drops = this.#drops;
    return (values, block) => {
      if (drops === this.#drops) {
        main.notify("enterProof", { chain, values, block });
      }
    };
  }

  #readState({ method, key, ...read }: StateRead, onlyProven: boolean): Promise<StateOutcome> {
    const { chain, main } = this.#options;
    return main.call("readState", { chain, method, key, onlyProven, ...remoteRead(read) });
  }

  #call({ method, key, ...read }: CacheableCall, ask: AskCall): Awaitable<RpcResponse> {
    const { chain, main } = this.#options;
    return this.#answer({ method, key, ...read }, ask, () =>
      main.call("answerCall", { chain, method, key, ...remoteRead(read) }),
    );
  }

  #answer(request: RemoteRequest, ask: AskCall, askMain: () => Promise<StateOutcome>): Awaitable<RpcResponse> {
    const { method, key, block, context } = request;
    if (key.length > MAX_KEY_CHARACTERS || this.#isOld(request)) {
      return ask();
    }
    const name = nameOf(request);
    const known = context.bypassCache ? undefined : this.#bodies.get(name);
    if (known !== undefined && (known.proof === "proven" || !context.requiresProof)) {
      this.#options.onHit(method);
      return known;
    }
    const add = this.#bodies.beginAdd(name);
    return this.#answerByMain(request, (answer) => add({ ...answer, block }), ask, askMain);
  }

  #isOld({ block, context }: RemoteRequest): boolean {
    return context.view.heads.latest.number - block.number >= this.#options.maxReadable();
  }

  async #answerByMain(
    request: RemoteRequest,
    add: AddAnswer,
    ask: AskCall,
    askMain: () => Promise<StateOutcome>,
  ): Promise<RpcResponse> {
    const { body, proof, asked, isFresh, isUnproven } = await askMain();
    if (body !== undefined) {
      return add({ body, proof });
    }
    if (isUnproven === true) {
      return UNPROVEN;
    }
    if (asked === undefined) {
      return ask();
    }
    const { chain, main } = this.#options;
    const entered = (response: RpcResponse | undefined) => ({ chain, asked, response });
    try {
      const response = await ask(isFresh === true ? request.context : undefined);
      const sent = entered(isEntered(response) ? response : undefined);
      if (isFresh === true) {
        return this.#findLearned(request, response, main.call("enterState", sent));
      }
      main.notify("enterState", sent);
      return response;
    } catch (error) {
      main.notify("enterState", entered(undefined));
      throw error;
    }
  }

  /** Returns the proven answer that the main process learns from a response of a node. Without one, returns the response. */
  async #findLearned(
    { block, context }: RemoteRequest,
    response: RpcResponse,
    answer: Promise<StateOutcome>,
  ): Promise<RpcResponse> {
    // Rejects if the main process has ended.
    const settled = answer.catch((): StateOutcome => ({}));
    const { body, proof } = (await resultWithin(settled, context.deadlineMs - performance.now()))?.result ?? {};
    return body !== undefined && proof === "proven" ? { ...response, body, block, proof } : response;
  }
}
