import type { Chunk } from "../../src/jsonrpc/response.ts";

/** Reads all chunks of a response as text. */
export const readChunks = async (chunks: readonly Chunk[]): Promise<string> => {
  const parts: Uint8Array[] = [];
  for (const chunk of chunks) {
    if (chunk instanceof Uint8Array) {
      parts.push(chunk);
    } else {
      for await (const part of chunk) {
        parts.push(part);
      }
    }
  }
  return Buffer.concat(parts).toString();
};
