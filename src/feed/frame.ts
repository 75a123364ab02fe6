import { brotliDecompressSync } from "node:zlib";

export type Frame = { readonly text: string } | { readonly refused: "tooLarge" | "undecodable" };

const OPENING_BRACE = 0x7b;
/** The first byte of X Layer's frames. A brotli stream that begins with this byte is empty (RFC 7932, section 9.2). */
const RECORD_SEPARATOR = 0x1e;
const isWhitespace = (byte: number | undefined): boolean =>
  byte === 0x20 || (byte !== undefined && byte >= 9 && byte <= 13);

/** JSON of a flashblock is compressed to a tenth or less. A frame that grows by more than this is hostile. */
const MAX_RATIO = 100;
/** Output of this size is decompressed in a millisecond. */
const MIN_OUTPUT_BYTES = 256 * 1024;

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
 * Decodes one WebSocket frame, text or binary (docs/reference/flashblocks.md, Frames). Skips a record separator and whitespace.
 * A frame that then begins with `{` is JSON, any other frame is brotli. `maxBytes` limits the frame and the decompressed text. So does their ratio.
 */
export const decodeFrame = (frame: Uint8Array, maxBytes: number): Frame => {
  if (frame.length > maxBytes) {
    return { refused: "tooLarge" };
  }
  const bytes = frame[0] === RECORD_SEPARATOR ? frame.subarray(1) : frame;
  let start = 0;
  while (isWhitespace(bytes[start])) {
    start++;
  }
  if (start === bytes.length) {
    return { refused: "undecodable" };
  }
  if (bytes[start] === OPENING_BRACE) {
    return decodeText(bytes.subarray(start));
  }
  const maxOutputLength = Math.min(maxBytes, Math.max(MIN_OUTPUT_BYTES, MAX_RATIO * bytes.length));
  try {
    return decodeText(brotliDecompressSync(bytes, { maxOutputLength }));
  } catch (error) {
    return { refused: isTooLong(error) ? "tooLarge" : "undecodable" };
  }
};
