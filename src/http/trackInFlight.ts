import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { type Chunk, isStream } from "../jsonrpc/formatResponse.ts";
import type { Endpoint, EndpointResponse } from "./endpoint.ts";

export interface TrackedEndpoint {
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
  const onAnswer = (answer: EndpointResponse): EndpointResponse => {
    if (!answer.chunks.some(isStream)) {
      end();
      return answer;
    }
    const chunks = answer.chunks.map((chunk): Chunk => {
      if (!isStream(chunk)) {
        return chunk;
      }
      inFlight++;
      return tracked(chunk);
    });
    end();
    return { ...answer, chunks };
  };
  const handle: Endpoint["handle"] = (body, request) => {
    inFlight++;
    let answer: Awaitable<EndpointResponse>;
    try {
      answer = endpoint.handle(body, request);
    } catch (error) {
      return onFailure(error);
    }
    return answer instanceof Promise ? answer.then(onAnswer, onFailure) : onAnswer(answer);
  };
  return {
    endpoint: { ...endpoint, handle },
    idle: () => (inFlight === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
};
