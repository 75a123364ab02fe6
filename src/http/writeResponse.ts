import type { ServerResponse } from "node:http";
import { Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from "node:zlib";
import type { Awaitable } from "../jsonrpc/call.ts";
import { type Chunk, discardStream, isStream, isWhole } from "../jsonrpc/response.ts";

type Encoding = "br" | "gzip";

/** A smaller response is not compressed. */
const MIN_COMPRESSED_BYTES = 1024;

/** Fast levels: logs shrink to a ninth at the lowest, and the thread pool is shared with DNS and files. */
const GZIP = { level: 1 };
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

const gzipAsync = promisify(gzip);
const brotliAsync = promisify(brotliCompress);

const parseWeight = (parameters: readonly string[]): number => {
  const weight = parameters.map((parameter) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(parameter)?.[1]).find(Boolean);
  return weight === undefined ? 1 : Math.min(Number(weight), 1);
};

/**
 * Chooses the encoding that an Accept-Encoding header prefers (RFC 9110, section 12.5.3). Undefined for no encoding.
 */
export const chooseEncoding = (accept: string | undefined): Encoding | undefined => {
  if (accept === undefined || accept === "") {
    return undefined;
  }
  const weights = new Map<string, number>();
  for (const part of accept.split(",")) {
    const [name = "", ...parameters] = part.split(";");
    weights.set(name.trim().toLowerCase(), parseWeight(parameters));
  }
  const weightOf = (name: string): number => weights.get(name) ?? weights.get("*") ?? 0;
  const gzipWeight = Math.max(weightOf("gzip"), weights.get("x-gzip") ?? 0);
  const brotliWeight = weightOf("br");
  const identityWeight = weights.get("identity") ?? 0;
  if (Math.max(gzipWeight, brotliWeight) <= 0 || identityWeight > Math.max(gzipWeight, brotliWeight)) {
    return undefined;
  }
  return brotliWeight >= gzipWeight ? "br" : "gzip";
};

/** Compresses in the thread pool, off the event loop. */
const compress = (bytes: Uint8Array, encoding: Encoding): Promise<Buffer> =>
  encoding === "br" ? brotliAsync(bytes, BROTLI) : gzipAsync(bytes, GZIP);

/** Creates the compressor of a stream. */
const createCompressor = (encoding: Encoding): Transform =>
  encoding === "br" ? createBrotliCompress(BROTLI) : createGzip(GZIP);

/** Up to this size, one copy is cheaper than several writes. A larger response is compressed as a stream. */
const MAX_JOINED_BYTES = 1024 * 1024;

/** Up to this size, header and body are one string: one system call instead of a vector of buffers. */
const MAX_STRING_BYTES = 64 * 1024;

const lengthOf = (chunks: readonly Uint8Array[]): number => {
  let bytes = 0;
  for (const chunk of chunks) {
    bytes += chunk.length;
  }
  return bytes;
};

/** Writes header and body as one string. Latin-1 leaves the bytes unchanged. */
const writeSmall = (response: ServerResponse, headers: string[], chunks: readonly Uint8Array[]): number => {
  const bytes = Buffer.concat(chunks);
  headers.push("Content-Length", String(bytes.length));
  response.writeHead(response.statusCode, headers).end(bytes.toString("latin1"), "latin1");
  return bytes.length;
};

const writeLarge = (response: ServerResponse, headers: string[], chunks: readonly Uint8Array[]): number => {
  const length = lengthOf(chunks);
  headers.push("Content-Length", String(length));
  response.writeHead(response.statusCode, headers);
  response.cork();
  for (const chunk of chunks) {
    response.write(chunk);
  }
  response.uncork();
  response.end();
  return length;
};

/** Errors of a pipeline whose reader has closed the connection. */
const DISCONNECTED = new Set(["ERR_STREAM_PREMATURE_CLOSE", "ERR_STREAM_DESTROYED", "ECONNRESET", "EPIPE"]);

const isDisconnect = (error: unknown): boolean =>
  error instanceof Error && "code" in error && typeof error.code === "string" && DISCONNECTED.has(error.code);

/**
 * `pipeline` applies back-pressure. An error breaks the connection, so that an incomplete response does not parse.
 * A client that disconnects is not an error.
 */
const writeStream = async (
  response: ServerResponse,
  headers: string[],
  chunks: readonly Chunk[],
  encoding: Encoding | undefined,
): Promise<number> => {
  let bytes = 0;
  let isIncomplete = false;
  const read = async function* (): AsyncGenerator<Uint8Array> {
    try {
      for (const chunk of chunks) {
        for await (const part of isStream(chunk) ? chunk : [chunk]) {
          bytes += part.length;
          yield part;
        }
      }
    } catch (error) {
      // The end of the client's signal fails the source too.
      isIncomplete = !response.destroyed;
      throw error;
    }
  };
  response.writeHead(response.statusCode, headers);
  const source = Readable.from(read(), { objectMode: false });
  try {
    await (encoding === undefined
      ? pipeline(source, response)
      : pipeline(source, createCompressor(encoding), response));
  } catch (error) {
    if (isIncomplete || !isDisconnect(error)) {
      throw error;
    }
  }
  return bytes;
};

/** Compresses in the thread pool and writes. Returns the length of the plain bytes. */
const writeCompressed = async (
  response: ServerResponse,
  headers: string[],
  chunks: readonly Uint8Array[],
  encoding: Encoding,
): Promise<number> => {
  const plain = Buffer.concat(chunks);
  const compressed = await compress(plain, encoding);
  if (!response.destroyed) {
    writeLarge(response, headers, [compressed]);
  }
  return plain.length;
};

const discardStreams = async (chunks: readonly Chunk[]): Promise<number> => {
  for (const chunk of chunks) {
    if (isStream(chunk)) {
      await discardStream(chunk);
    }
  }
  return 0;
};

/**
 * Writes a response with the status `response.statusCode` and ends it. It is synchronous for a short response.
 * Appends to `headers`, a flat list of names and values.
 * Returns the body's bytes before compression, 0 if the client has disconnected.
 * Rejects if a stream fails while it is written.
 */
export const writeResponse = (
  response: ServerResponse,
  headers: string[],
  chunks: readonly Chunk[],
  acceptEncoding: string | undefined,
): Awaitable<number> => {
  if (response.destroyed) {
    return discardStreams(chunks);
  }
  if (chunks.length === 0) {
    response.writeHead(response.statusCode, headers).end();
    return 0;
  }
  const whole = isWhole(chunks) ? chunks : undefined;
  const length = whole === undefined ? Number.POSITIVE_INFINITY : lengthOf(whole);
  if (whole !== undefined && length < MIN_COMPRESSED_BYTES) {
    return writeSmall(response, headers, whole);
  }

  headers.push("Vary", "Accept-Encoding");
  const encoding = chooseEncoding(acceptEncoding);
  if (encoding !== undefined) {
    headers.push("Content-Encoding", encoding);
    return whole === undefined || length > MAX_JOINED_BYTES
      ? writeStream(response, headers, chunks, encoding)
      : writeCompressed(response, headers, whole, encoding);
  }
  if (whole === undefined) {
    return writeStream(response, headers, chunks, encoding);
  }
  return length <= MAX_STRING_BYTES ? writeSmall(response, headers, whole) : writeLarge(response, headers, whole);
};
