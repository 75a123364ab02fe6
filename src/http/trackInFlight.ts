import type { Awaitable } from "../jsonrpc/call.ts";
import { type Chunk, isStream, isWhole } from "../jsonrpc/response.ts";
import type { Endpoint, EndpointResponse } from "./endpoint.ts";

interface TrackedEndpoint {
  readonly endpoint: Endpoint;
  /** Resolves when no request is in flight, streams included. Call it after the last request has arrived. */
  idle(): Promise<void>;
}

/** Wraps an endpoint and counts its requests in flight, so that its chain can be closed after the last one. */
export const trackInFlight = (endpoint: Endpoint): TrackedEndpoint => {
  let inFlight = 0;
  let waiting: (() => void)[] = [];
  const end = (): void => {
    inFlight--;
    if (inFlight > 0) {
      return;
    }
    for (const resolve of waiting) {
      resolve();
    }
    waiting = [];
  };
  const tracked = async function* (stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* stream;
    } finally {
      end();
    }
  };
  const onFailure = (error: unknown): never => {
    end();
    throw error;
  };
  const onResponse = (response: EndpointResponse): EndpointResponse => {
    if (isWhole(response.chunks)) {
      end();
      return response;
    }
    const chunks = response.chunks.map((chunk): Chunk => {
      if (!isStream(chunk)) {
        return chunk;
      }
      inFlight++;
      return tracked(chunk);
    });
    end();
    return { ...response, chunks };
  };
  const handle: Endpoint["handle"] = (body, request) => {
    inFlight++;
    let response: Awaitable<EndpointResponse>;
    try {
      response = endpoint.handle(body, request);
    } catch (error) {
      return onFailure(error);
    }
    return response instanceof Promise ? response.then(onResponse, onFailure) : onResponse(response);
  };
  return {
    endpoint: { ...endpoint, handle },
    idle: () => (inFlight === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
};
