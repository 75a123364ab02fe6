import { type Chunk, isStream } from "../../jsonrpc/formatResponse.ts";
import type { ResultMemory } from "../../jsonrpc/resultMemory.ts";
import { overBudget } from "../../jsonrpc/rpcError.ts";

/** Reads the streams of a response into memory. Rejects if a stream fails, or with RpcError (503) without room. */
export const collectChunks = async (
  chunks: readonly Chunk[],
  memory: ResultMemory | undefined,
): Promise<readonly Uint8Array[]> => {
  const whole: Uint8Array[] = [];
  for (const chunk of chunks) {
    if (!isStream(chunk)) {
      whole.push(chunk);
      continue;
    }
    for await (const part of chunk) {
      if (memory?.holdResponse(part.length) === false) {
        throw overBudget();
      }
      whole.push(part);
    }
  }
  return whole;
};
