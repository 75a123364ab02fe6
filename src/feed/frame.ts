import { brotliDecompressSync } from "node:zlib";

export type Frame = { readonly text: string } | { readonly refused: "tooLarge" | "undecodable" };

const OPENING_BRACE = 0x7b;
const isWhitespace = (byte: number | undefined): boolean =>
  byte === 0x20 || (byte !== undefined && byte >= 9 && byte <= 13);

const decoder = new TextDecoder("utf-8", { fatal: true });

const decodeText = (bytes: Uint8Array): Frame => {
  try {
    return { text: decoder.decode(bytes) };
  } catch {
    return { refused: "undecodable" };
  }
};

const isTooLong = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";

/**
 * The text of one WebSocket frame, text or binary. What does not begin with `{` after whitespace is brotli: proxies compress,
 * builders do not, and neither says so. `maxBytes` holds before and after decompression.
 */
export const decodeFrame = (bytes: Uint8Array, maxBytes: number): Frame => {
  if (bytes.length > maxBytes) return { refused: "tooLarge" };
  let start = 0;
  while (isWhitespace(bytes[start])) start++;
  if (start === bytes.length) return { refused: "undecodable" };
  if (bytes[start] === OPENING_BRACE) return decodeText(bytes.subarray(start));
  try {
    return decodeText(brotliDecompressSync(bytes, { maxOutputLength: maxBytes }));
  } catch (error) {
    return { refused: isTooLong(error) ? "tooLarge" : "undecodable" };
  }
};
