import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { LogCollector } from "./logCollector.ts";
import { formatList, streamList } from "./mergeLogs.ts";

export interface LogResponseOptions {
  /** Number of segments of the query. */
  readonly segments: number;
  /** Limit of the response's size; Infinity for none. */
  readonly maxBytes: number;
  readonly bypassCache: boolean;
}

/** A response of this size is sent while the rest of it is fetched. */
const STREAM_ABOVE_BYTES = 8 * 1024 * 1024;
/** A response up to this size is one buffer. */
const WHOLE_BYTES = 256 * 1024;
const BRACKETS_BYTES = 2;

const tooLarge = (maxBytes: number): RpcError =>
  new RpcError(CODES.RESPONSE_TOO_LARGE, `The logs are larger than the limit of a response: ${maxBytes} bytes`);

/** Limits the size of a stream. After the first byte, only a broken connection can report an error. */
async function* limited(
  first: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let total = BRACKETS_BYTES;
  for (const chunk of first) {
    total += chunk.length;
    yield chunk;
  }
  for await (const chunk of rest) {
    total += chunk.length;
    if (total > maxBytes) {
      throw tooLarge(maxBytes);
    }
    yield chunk;
  }
}

interface Start {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  /** No chunk follows. */
  readonly isComplete: boolean;
}

/** Reads chunks until the response is complete, or large enough to be streamed. */
const readStart = async (source: LogCollector["chunks"], maxBytes: number): Promise<Start> => {
  const chunks: Uint8Array[] = [];
  let bytes = BRACKETS_BYTES;
  while (bytes < STREAM_ABOVE_BYTES) {
    const { done, value } = await source.next();
    if (done === true) {
      return { chunks, bytes, isComplete: true };
    }
    chunks.push(value);
    bytes += value.length;
    if (bytes > maxBytes) {
      throw tooLarge(maxBytes);
    }
  }
  return { chunks, bytes, isComplete: false };
};

const statusOf = (
  { found, isStored }: LogCollector,
  isComplete: boolean,
  { segments, bypassCache }: LogResponseOptions,
): CacheStatus => {
  if (found.segments === segments) {
    return { hit: found.from.has("redis") ? "redis" : "memory" };
  }
  const detail = `${found.segments}/${segments} segments`;
  const fwd = bypassCache ? "request" : found.segments > 0 ? "partial" : "miss";
  return { fwd, detail, ...(isComplete && { stored: isStored() }) };
};

/** Creates the response of a query: one buffer, or a stream if it is large. Throws if it exceeds `maxBytes`. */
export const createLogResponse = async (collector: LogCollector, options: LogResponseOptions): Promise<RpcResponse> => {
  const { maxBytes } = options;
  const { chunks, bytes, isComplete } = await readStart(collector.chunks, maxBytes);
  const isWhole = isComplete && bytes <= WHOLE_BYTES;
  const [node] = collector.nodes;
  return {
    body: isWhole ? formatList(chunks) : streamList(isComplete ? chunks : limited(chunks, collector.chunks, maxBytes)),
    status: statusOf(collector, isComplete, options),
    ...(node !== undefined && collector.nodes.size === 1 && { node }),
  };
};
