import { createProgress, type InboundRequest, NOT_RECEIVED } from "../core/context.ts";
import { LazySignal } from "../core/lazySignal.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { readWhole } from "../jsonrpc/response.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { closedError, type EthereumProvider, ProviderRpcError, type RequestArguments } from "./provider.ts";

interface Answer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

const formatBody = ({ method, params = [] }: RequestArguments): Uint8Array => {
  try {
    return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  } catch (error) {
    throw new ProviderRpcError(CODES.INVALID_PARAMS, `params are not JSON: ${String(error)}`);
  }
};

const readAnswer = async (endpoint: Endpoint, body: Uint8Array, inbound: InboundRequest): Promise<Answer> => {
  const { chunks } = await endpoint.handle(body, inbound);
  const read: Uint8Array[] = [];
  for (const chunk of chunks) {
    read.push(await readWhole(chunk));
  }
  return JSON.parse(Buffer.concat(read).toString());
};

const toProviderError = (error: unknown): ProviderRpcError => {
  if (error instanceof ProviderRpcError) {
    return error;
  }
  return error instanceof RpcError
    ? new ProviderRpcError(error.code, error.message, error.data)
    : new ProviderRpcError(CODES.INTERNAL, `Internal error: ${String(error)}`);
};

const CALLER = { clientId: "library", connection: {} };

/** The requests of this process, whose path is that of a client's request behind HTTP. They need no API key. */
export class OwnRequests {
  readonly #running = new Set<LazySignal>();
  #isClosed = false;

  /** Creates the provider of a chain. `endpoint` returns the endpoint of the chain, and throws if there is none. */
  provider(endpoint: () => Endpoint): EthereumProvider {
    return { request: (args) => this.#request(endpoint, args) };
  }

  /** Requests in flight reject, and those that follow. */
  close(): void {
    this.#isClosed = true;
    for (const ending of this.#running) {
      ending.abort();
    }
  }

  async #request(endpoint: () => Endpoint, args: RequestArguments): Promise<unknown> {
    if (this.#isClosed) {
      throw closedError();
    }
    const ending = new LazySignal();
    const inbound: InboundRequest = {
      ...{ caller: CALLER, received: NOT_RECEIVED, lazySignal: ending },
      get signal() {
        return ending.signal;
      },
      progress: createProgress(),
    };
    const closed = new Promise<never>((_, reject) => ending.add(() => reject(closedError())));
    this.#running.add(ending);
    try {
      const { result, error } = await Promise.race([readAnswer(endpoint(), formatBody(args), inbound), closed]);
      if (error !== undefined) {
        throw new ProviderRpcError(error.code, error.message, error.data);
      }
      return result;
    } catch (error) {
      throw toProviderError(error);
    } finally {
      this.#running.delete(ending);
    }
  }
}
