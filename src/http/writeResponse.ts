import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Chunk, isStream } from "../jsonrpc/formatResponse.ts";
import { discardStream } from "../jsonrpc/responseStream.ts";
import { chooseEncoding, compress, createCompressor, MIN_COMPRESSED_BYTES } from "./compression.ts";

/** Up to here one copy is cheaper than several writes; a larger answer is compressed piece by piece. */
const MAX_JOINED_BYTES = 1024 * 1024;

/** Up to here header and body go as one string: one system call instead of a vector of pieces. */
const MAX_STRING_BYTES = 64 * 1024;

const VARY = ["Vary", "Accept-Encoding"];

const isBytes = (chunks: readonly Chunk[]): chunks is readonly Uint8Array[] => !chunks.some(isStream);

const lengthOf = (chunks: readonly Uint8Array[]): number => {
  let bytes = 0;
  for (const chunk of chunks) bytes += chunk.length;
  return bytes;
};

/** One string with the header in front is one write. Latin-1 both ways leaves the bytes as they are. */
const writeSmall = (
  response: ServerResponse,
  status: number,
  headers: string[],
  chunks: readonly Uint8Array[],
): number => {
  const bytes = Buffer.concat(chunks);
  headers.push("Content-Length", String(bytes.length));
  response.writeHead(status, headers).end(bytes.toString("latin1"), "latin1");
  return bytes.length;
};

const writeWhole = (
  response: ServerResponse,
  status: number,
  headers: string[],
  chunks: readonly Uint8Array[],
): number => {
  const length = lengthOf(chunks);
  headers.push("Content-Length", String(length));
  response.writeHead(status, headers);
  response.cork();
  for (const chunk of chunks) response.write(chunk);
  response.uncork();
  response.end();
  return length;
};

/** Back-pressure is the pipeline's; an error breaks the connection, so that nothing incomplete parses. */
const writeStream = async (
  response: ServerResponse,
  status: number,
  headers: string[],
  chunks: readonly Chunk[],
  encoding: ReturnType<typeof chooseEncoding>,
): Promise<number> => {
  let bytes = 0;
  const read = async function* (): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) {
      for await (const part of isStream(chunk) ? chunk : [chunk]) {
        bytes += part.length;
        yield part;
      }
    }
  };
  response.writeHead(status, headers);
  const source = Readable.from(read(), { objectMode: false });
  if (encoding === undefined) await pipeline(source, response);
  else await pipeline(source, createCompressor(encoding), response);
  return bytes;
};

/** Writes a response body and ends it; the bytes before compression. Rejects where the connection broke on the way. */
export const writeResponse = async (
  response: ServerResponse,
  status: number,
  headers: string[],
  chunks: readonly Chunk[],
  acceptEncoding: string | undefined,
): Promise<number> => {
  if (response.destroyed) {
    for (const chunk of chunks) if (isStream(chunk)) await discardStream(chunk);
    return 0;
  }
  if (chunks.length === 0) {
    response.writeHead(status, headers).end();
    return 0;
  }
  const whole = isBytes(chunks);
  const length = whole ? lengthOf(chunks) : Number.POSITIVE_INFINITY;
  if (whole && length < MIN_COMPRESSED_BYTES) return writeSmall(response, status, headers, chunks);

  headers.push(...VARY);
  const encoding = chooseEncoding(acceptEncoding);
  if (encoding !== undefined) headers.push("Content-Encoding", encoding);
  if (!whole || (encoding !== undefined && length > MAX_JOINED_BYTES)) {
    return writeStream(response, status, headers, chunks, encoding);
  }
  if (encoding === undefined) {
    return length <= MAX_STRING_BYTES
      ? writeSmall(response, status, headers, chunks)
      : writeWhole(response, status, headers, chunks);
  }
  const compressed = await compress(Buffer.concat(chunks), encoding);
  if (!response.destroyed) writeWhole(response, status, headers, [compressed]);
  return length;
};
