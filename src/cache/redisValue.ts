import { promisify } from "node:util";
import { crc32, deflateRaw, inflateRaw, inflateRawSync } from "node:zlib";
import type { Grade } from "../core/grade.ts";
import { formatData, type Hash } from "../ethereum/hex.ts";
import type { CacheEntry, ValueSource } from "./cacheEntry.ts";

/*
 * A value: magic, version, flags, milliseconds since 1970, length of the plain body, block number, block hash,
 * checksum, source if there is one, body. The source is its length and the JSON text of its node and origin.
 * The checksum covers the key too, so that foreign or truncated bytes and values of another key are rejected.
 */
const MAGIC = 0xfbca;
const VERSION = 1;
/** The version of a value with a source. Replicas that know only the first version reject it. */
const SOURCE_VERSION = 2;
const DEFLATED = 1;
const FINAL = 2;
const HAS_BLOCK = 4;
const AGREED = 8;
/** Earlier versions ignore the flags of grades. */
const PROVEN = 16;
const CHECKED = 32;
const HEADER_BYTES = 60;
const CHECKSUM_AT = 56;
const SOURCE_LENGTH_BYTES = 2;

/** A smaller body is not compressed: the time costs more than the bytes. */
const COMPRESS_BYTES = 4_096;
/** A larger body is decompressed off the event loop. */
const INLINE_BYTES = 65_536;
/** The fastest level: Redis is in the same network, and the bytes are mostly hex. */
const LEVEL = 1;

/** A larger body is not stored, and a value that claims one is rejected before it is decompressed. */
export const MAX_PLAIN_BYTES = 32 * 1024 * 1024;

const deflateAsync = promisify(deflateRaw);
const inflateAsync = promisify(inflateRaw);
const NO_SOURCE = Buffer.alloc(0);

const encodeSource = ({ source }: CacheEntry): Buffer => {
  if (source === undefined) {
    return NO_SOURCE;
  }
  const text = Buffer.from(JSON.stringify([source.node, source.origin]));
  const length = Buffer.alloc(SOURCE_LENGTH_BYTES);
  length.writeUInt16BE(text.byteLength);
  return Buffer.concat([length, text]);
};

/** Encodes an entry for Redis. */
export const encodeValue = async (key: string, entry: CacheEntry): Promise<Buffer> => {
  const isLarge = entry.body.byteLength >= COMPRESS_BYTES;
  const payload = isLarge ? await deflateAsync(entry.body, { level: LEVEL }) : entry.body;
  const source = encodeSource(entry);
  const payloadAt = HEADER_BYTES + source.byteLength;
  const value = Buffer.allocUnsafe(payloadAt + payload.byteLength).fill(0, 0, HEADER_BYTES);
  value.writeUInt16BE(MAGIC, 0);
  value[2] = entry.source === undefined ? VERSION : SOURCE_VERSION;
  value[3] = flagsOf(entry, isLarge);
  value.writeDoubleBE(entry.storedAtMs, 4);
  value.writeUInt32BE(entry.body.byteLength, 12);
  if (entry.block !== undefined) {
    value.writeBigUInt64BE(entry.block.number, 16);
    value.write(entry.block.hash.slice(2), 24, 32, "hex");
  }
  value.set(source, HEADER_BYTES);
  value.set(payload, payloadAt);
  value.writeUInt32BE(checksum(key, value), CHECKSUM_AT);
  return value;
};

const GRADE_FLAGS = { proven: PROVEN, checked: CHECKED, stated: 0 } as const;

const gradeOf = (flags: number): Grade | undefined =>
  (flags & PROVEN) !== 0 ? "proven" : (flags & CHECKED) !== 0 ? "checked" : undefined;

const flagsOf = ({ isFinal, block, isAgreed, grade }: CacheEntry, isDeflated: boolean): number =>
  (isDeflated ? DEFLATED : 0) |
  (isFinal ? FINAL : 0) |
  (block === undefined ? 0 : HAS_BLOCK) |
  (isAgreed === true ? AGREED : 0) |
  (grade === undefined ? 0 : GRADE_FLAGS[grade]);

const isKnownVersion = (version: number | undefined): boolean => version === VERSION || version === SOURCE_VERSION;

interface DecodedSource {
  readonly source: ValueSource | undefined;
  /** The position of the body. */
  readonly end: number;
}

/** Returns undefined if the source has another form. */
const decodeSource = (value: Buffer): DecodedSource | undefined => {
  if (value[2] === VERSION) {
    return { source: undefined, end: HEADER_BYTES };
  }
  const start = HEADER_BYTES + SOURCE_LENGTH_BYTES;
  const end = value.byteLength < start ? start : start + value.readUInt16BE(HEADER_BYTES);
  if (value.byteLength < end) {
    return undefined;
  }
  const [node, origin]: readonly unknown[] = JSON.parse(value.toString("utf8", start, end));
  return typeof node === "string" && typeof origin === "string" ? { source: { node, origin }, end } : undefined;
};

/**
 * Decodes a value. Returns undefined if `encodeValue` did not create it for this key. Rejects if decompression fails.
 */
export const decodeValue = async (key: string, value: Buffer): Promise<CacheEntry | undefined> => {
  if (value.byteLength < HEADER_BYTES || value.readUInt16BE(0) !== MAGIC || !isKnownVersion(value[2])) {
    return undefined;
  }
  if (value.readUInt32BE(CHECKSUM_AT) !== checksum(key, value)) {
    return undefined;
  }
  const flags = value[3] ?? 0;
  const plainBytes = value.readUInt32BE(12);
  if (plainBytes > MAX_PLAIN_BYTES) {
    return undefined;
  }
  const decoded = decodeSource(value);
  if (decoded === undefined) {
    return undefined;
  }
  const payload = value.subarray(decoded.end);
  const body = (flags & DEFLATED) === 0 ? payload : await inflate(payload, plainBytes);
  if (body.byteLength !== plainBytes) {
    return undefined;
  }
  const grade = gradeOf(flags);
  const hash: Hash = formatData(value.subarray(24, CHECKSUM_AT));
  return {
    body,
    isFinal: (flags & FINAL) !== 0,
    storedAtMs: value.readDoubleBE(4),
    ...(decoded.source && { source: decoded.source, isAgreed: (flags & AGREED) !== 0 }),
    ...(grade && { grade }),
    ...((flags & HAS_BLOCK) !== 0 && { block: { number: value.readBigUInt64BE(16), hash } }),
  };
};

const inflate = (payload: Uint8Array, plainBytes: number): Uint8Array | Promise<Uint8Array> => {
  const options = { maxOutputLength: Math.max(1, plainBytes) };
  return plainBytes <= INLINE_BYTES ? inflateRawSync(payload, options) : inflateAsync(payload, options);
};

const checksum = (key: string, value: Buffer): number => {
  const header = crc32(value.subarray(0, CHECKSUM_AT), crc32(key));
  return crc32(value.subarray(HEADER_BYTES), header);
};
