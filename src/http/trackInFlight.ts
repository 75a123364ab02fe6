import { type Chunk, isStream } from "../jsonrpc/formatResponse.ts";
import type { Endpoint, EndpointResponse } from "./endpoint.ts";

export interface TrackedEndpoint {
  readonly endpoint: Endpoint;
  /** Resolves when no request is under way, streams included. To be asked when no new ones come. */
  idle(): Promise<void>;
}

/** Knows when the last request has ended: what stands behind it can then be closed. */
export const trackInFlight = (endpoint: Endpoint): TrackedEndpoint => {
  let open = 0;
  let waiting: (() => void)[] = [];
  const end = (): void => {
    open--;
    if (open > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  const watched = async function* (stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* stream;
    } finally {
      end();
    }
  };
  const handle: Endpoint["handle"] = async (body, request) => {
    open++;
    let answer: EndpointResponse;
    try {
      answer = await endpoint.handle(body, request);
    } catch (error) {
      end();
      throw error;
    }
    if (!answer.chunks.some(isStream)) {
      end();
      return answer;
    }
    const chunks = answer.chunks.map((chunk): Chunk => {
      if (!isStream(chunk)) return chunk;
      open++;
      return watched(chunk);
    });
    end();
    return { ...answer, chunks };
  };
  return {
    endpoint: { ...endpoint, handle },
    idle: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
};
