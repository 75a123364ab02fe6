import { crc32 } from "node:zlib";
import type { Deflated } from "../jsonrpc/call.ts";

/** RFC 1952, section 2.3: magic, deflate, no flags, no time, unknown system. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
const MAX_STORED_BYTES = 0xffff;
const POLYNOMIAL = 0xedb88320;

/**
 * Creates the gzip of `before`, a compressed body and `after` without compressing.
 * The plain bytes go into stored blocks (RFC 1951, section 3.2.4) around the blocks of the body.
 * There is one gzip member, because browsers do not read a second one.
 * Brotli has no such form: its stream header and distance ring cannot restart inside a stream.
 */
export const spliceGzip = (before: Uint8Array, body: Deflated, after: Uint8Array): Buffer => {
  const trailer = Buffer.allocUnsafe(8);
  trailer.writeUInt32LE(crc32(after, combineCrc32(crc32(before), body.crc32, body.length)), 0);
  trailer.writeUInt32LE((before.byteLength + body.length + after.byteLength) % 2 ** 32, 4);
  return Buffer.concat([HEADER, ...storedBlocks(before, false), body.bytes, ...storedBlocks(after, true), trailer]);
};

const storedBlocks = (bytes: Uint8Array, isLast: boolean): Uint8Array[] => {
  const blocks: Uint8Array[] = [];
  let start = 0;
  do {
    const part = bytes.subarray(start, start + MAX_STORED_BYTES);
    start += part.byteLength;
    const head = Buffer.allocUnsafe(5);
    head[0] = isLast && start >= bytes.byteLength ? 1 : 0;
    head.writeUInt16LE(part.byteLength, 1);
    head.writeUInt16LE(part.byteLength ^ 0xffff, 3);
    blocks.push(head, part);
  } while (start < bytes.byteLength);
  return blocks;
};

/**
 * Computes the CRC of two joined parts from their CRCs, as zlib's crc32_combine does.
 * It shifts the first CRC by the length of the second part.
 */
const combineCrc32 = (first: number, second: number, secondLength: number): number =>
  (multiply(powerOfX(secondLength * 8), first) ^ second) >>> 0;

/** Multiplies two polynomials over GF(2) modulo the CRC's polynomial. Bits are reversed, as in the CRC. */
const multiply = (one: number, other: number): number => {
  let product = 0;
  let shifted = other;
  for (let bit = 31; bit >= 0; bit--) {
    if (((one >>> bit) & 1) === 1) {
      product ^= shifted;
    }
    shifted = (shifted & 1) === 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1;
  }
  return product >>> 0;
};

const X_TO_0 = 0x80000000;
const X_TO_1 = 0x40000000;

const powerOfX = (exponent: number): number => {
  let power = X_TO_0;
  let square = X_TO_1;
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) {
      power = multiply(square, power);
    }
    square = multiply(square, square);
  }
  return power;
};
