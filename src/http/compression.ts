import type { Transform } from "node:stream";
import { promisify } from "node:util";
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from "node:zlib";

export type Encoding = "br" | "gzip";

/** A smaller response is not compressed. */
export const MIN_COMPRESSED_BYTES = 1024;

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
export const compress = (bytes: Uint8Array, encoding: Encoding): Promise<Buffer> =>
  encoding === "br" ? brotliAsync(bytes, BROTLI) : gzipAsync(bytes, GZIP);

/** Creates the compressor of a stream. */
export const createCompressor = (encoding: Encoding): Transform =>
  encoding === "br" ? createBrotliCompress(BROTLI) : createGzip(GZIP);
