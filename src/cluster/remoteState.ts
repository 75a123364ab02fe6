import type { Context } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/call.ts";
import { type CacheableCall, type CallCache, MAX_KEY_CHARACTERS } from "../state/calls/callCache.ts";
import type { CallMethod } from "../state/calls/callRun.ts";
import type { StateMethod, StateRead, StateReads } from "../state/stateReads.ts";
import type { MainChannel } from "./chainCopy.ts";
import type { StateOutcome } from "./chainProtocol.ts";
import { KnownBodies } from "./knownBodies.ts";

export interface RemoteStateOptions {
  readonly chain: string;
  readonly main: MainChannel;
  /** Returns the number of the newest blocks whose state the main process may know. */
  readonly maxReadable: () => number;
  /** Called with each answer that the main process was not asked for. */
  onHit(method: StateMethod | CallMethod): void;
}

type Ask = () => Awaitable<RpcResponse>;

/** Larger responses are not sent to the main process. */
const MAX_ENTERED_BYTES = 131_072;

const isEntered = ({ body }: RpcResponse): boolean => body instanceof Uint8Array && body.length <= MAX_ENTERED_BYTES;

/** The known state of the main process. Answers that it gave for a block answer equal requests for this block here. */
export class RemoteState {
  readonly reads: Pick<StateReads, "request" | "forget">;
  readonly callCache: Pick<CallCache, "request">;
  readonly #options: RemoteStateOptions;
  readonly #bodies = new KnownBodies();

  constructor(options: RemoteStateOptions) {
    this.#options = options;
    this.reads = {
      request: (read, ask) => this.#read(read, ask),
      forget: () => {
        this.drop();
        options.main.notify("forgetState", { chain: options.chain });
      },
    };
    this.callCache = { request: (call, ask) => this.#call(call, ask) };
  }

  /** Forgets all answers, because the main process has dropped what it knew. */
  drop(): void {
    this.#bodies.clear();
  }

  #read({ method, key, block, context }: StateRead, ask: Ask): Awaitable<RpcResponse> {
    const { chain, main } = this.#options;
    const { bypassCache, caller } = context;
    const text = `${key.address}${key.slot ?? ""}`;
    return this.#answer({ method, key: text, block, context }, ask, () =>
      main.call("readState", { chain, method, key, block, bypassCache, clientId: caller.clientId }),
    );
  }

  #call({ method, key, block, context }: CacheableCall, ask: Ask): Awaitable<RpcResponse> {
    const { chain, main } = this.#options;
    const { bypassCache, caller } = context;
    return this.#answer({ method, key, block, context }, ask, () =>
      main.call("answerCall", { chain, method, key, block, bypassCache, clientId: caller.clientId }),
    );
  }

  #answer(request: RemoteRequest, ask: Ask, askMain: () => Promise<StateOutcome>): Awaitable<RpcResponse> {
    const { method, key, block, context } = request;
    const isOld = context.view.heads.latest.number - block.number >= this.#options.maxReadable();
    if (key.length > MAX_KEY_CHARACTERS || isOld) {
      return ask();
    }
    const name = `${block.hash}${method}${key}`;
    const known = context.bypassCache ? undefined : this.#bodies.get(name);
    if (known !== undefined) {
      this.#options.onHit(method);
      return known;
    }
    return this.#answerByMain(name, ask, askMain);
  }

  async #answerByMain(name: string, ask: Ask, askMain: () => Promise<StateOutcome>): Promise<RpcResponse> {
    const add = this.#bodies.beginAdd(name);
    const { body, asked } = await askMain();
    if (body !== undefined) {
      return add(body);
    }
    return asked === undefined ? ask() : this.#enterResponse(asked, ask);
  }

  async #enterResponse(asked: number, ask: Ask): Promise<RpcResponse> {
    const { chain, main } = this.#options;
    const enter = (response: RpcResponse | undefined) => main.notify("enterState", { chain, asked, response });
    try {
      return await whenKnown(ask(), (response) => {
        enter(isEntered(response) ? response : undefined);
        return response;
      });
    } catch (error) {
      enter(undefined);
      throw error;
    }
  }
}

interface RemoteRequest {
  readonly method: StateMethod | CallMethod;
  readonly key: string;
  readonly block: StateRead["block"];
  readonly context: Context;
}
