import { NodeError, type Reach } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { isFault } from "./errorKind.ts";

export interface BatchesOptions {
  readonly name: string;
  send(call: Call, reach: Reach): Promise<Uint8Array>;
  sendBatch(calls: readonly Call[], reach: Reach): Promise<(Uint8Array | NodeError)[]>;
}

export interface Batches {
  send(calls: readonly Call[], reach: Reach): Promise<(Uint8Array | NodeError)[]>;
}

/** Most providers allow this. Batches to a stricter provider are made smaller after its first error. */
const MAX_CALLS = 100;

const chunks = (calls: readonly Call[], size: number): (readonly Call[])[] =>
  Array.from({ length: Math.ceil(calls.length / size) }, (_, index) => calls.slice(index * size, (index + 1) * size));

/** Sends calls in batches. A rejected batch is halved, down to single calls, and later batches have the smaller size. */
export const createBatches = ({ name, send, sendBatch }: BatchesOptions): Batches => {
  let maxCalls = MAX_CALLS;

  const asNodeError = (error: unknown): NodeError =>
    error instanceof NodeError ? error : new NodeError("other", name, `${name}: the client has disconnected`);

  const single = async (call: Call, reach: Reach): Promise<Uint8Array | NodeError> => {
    try {
      return await send(call, reach);
    } catch (error) {
      return asNodeError(error);
    }
  };

  /** Whether the node rejected the batch as such. A node that is down, slow or rate limited did not. */
  const rejectsBatch = (error: NodeError): boolean => {
    const { kind } = error;
    return kind !== "rateLimited" && kind !== "billing" && (kind === "invalidAnswer" || !isFault(error));
  };

  const sendChunk = async (calls: readonly Call[], reach: Reach): Promise<(Uint8Array | NodeError)[]> => {
    const [first] = calls;
    if (first && calls.length === 1) {
      return [await single(first, reach)];
    }
    try {
      return await sendBatch(calls, reach);
    } catch (error) {
      const failure = asNodeError(error);
      if (reach.signal.aborted || !rejectsBatch(failure)) {
        return calls.map(() => failure);
      }
      maxCalls = Math.max(1, Math.min(maxCalls, calls.length >> 1));
      return sendAll(calls, reach);
    }
  };

  const sendAll = async (calls: readonly Call[], reach: Reach): Promise<(Uint8Array | NodeError)[]> =>
    (await Promise.all(chunks(calls, maxCalls).map((chunk) => sendChunk(chunk, reach)))).flat();

  return { send: sendAll };
};
