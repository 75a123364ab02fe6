import { crc32 } from "node:zlib";
import { z } from "zod";
import type { BlockId } from "../../core/heads.ts";
import { type EnvironmentOpcode, isEnvironmentOpcode } from "../../core/readSet.ts";
import { type Hash, isHash } from "../../ethereum/hex.ts";
import type { StateField } from "../stateKey.ts";
import { ADDRESS_BYTES, SLOT_BYTES, type ValuePlace } from "../store/keyEncoder.ts";

/** Increased when the form of a snapshot changes. One of another format is dropped. */
const SNAPSHOT_FORMAT = 4;

const hash = z.custom<Hash>(isHash);
const count = z.number().int().nonnegative();

const costs = z.object({ repeatedUnits: z.number(), blocks: z.number() });

const defaults = z.object({
  gas: z.string().regex(/^\d+$/),
  hasZeroSender: z.boolean(),
  fromHeader: z.array(z.custom<EnvironmentOpcode>(isEnvironmentOpcode)),
});

/** What is in front of the values. */
const header = z.object({
  /** Of all chunks of this snapshot. */
  id: count,
  chainId: z.string(),
  genesis: hash,
  /** Names the rules of the chain, and the options on which the values depend. */
  rules: z.string(),
  /** The block at which the values are known. */
  number: z.string().regex(/^\d+$/),
  /** The hashes of the readable blocks, that of the block first, then its ancestors. */
  hashes: z.array(hash).min(1),
  /** The nodes of the chain, in the order by which answers name them. `address` is a hash of the URL. */
  nodes: z.array(
    z.object({
      ...{ name: z.string(), address: z.string() },
      /** The environment of its calls. Absent: no answer is of this node. */
      defaults: defaults.optional(),
    }),
  ),
  costs,
});

export type SnapshotHeader = z.infer<typeof header>;

/** A known value at the block of a snapshot. */
export interface SnapshotValue {
  readonly field: StateField;
  /** The blocks since the value is known, up to MAX_AGE. */
  readonly age: number;
  /** Whether clients read it lately. */
  readonly isUsed: boolean;
}

/** A value in a chunk, with its key. */
export interface PlacedValue extends SnapshotValue {
  readonly place: ValuePlace;
}

export interface SnapshotCode {
  /** 64 digits of hex. */
  readonly hash: string;
  readonly code: Uint8Array;
}

/** A snapshot that is not complete, or that was changed. */
export class DamagedSnapshot extends Error {
  override readonly name = "DamagedSnapshot";
}

const MAX_AGE = 0xffff;
/** Bytes of one chunk. A code can make it larger. */
export const CHUNK_BYTES = 256 * 1024;

const KINDS = { header: 0, values: 1, codes: 2, end: 3, answers: 4, headers: 5 } as const;
export type ChunkKind = keyof typeof KINDS;

/** Checksum, format, kind, id of the snapshot, number of the chunk. */
const PREFIX_BYTES = 4 + 1 + 1 + 4 + 4;
/** In the order of their codes. */
export const SNAPSHOT_FIELDS = ["slot", "balance", "nonce", "code"] as const satisfies readonly StateField[];
const USED = 0x80;
/** Field and use, address, value, age. A slot comes last. */
const ADDRESS_AT = 1;
const VALUE_AT = ADDRESS_AT + ADDRESS_BYTES;
const AGE_AT = VALUE_AT + 32;
const VALUE_BYTES = AGE_AT + 2;
const HASH_BYTES = 32;
const LENGTH_BYTES = 4;
const NEWLINE = 0x0a;

const bytesOf = (field: StateField): number => VALUE_BYTES + (field === "slot" ? SLOT_BYTES : 0);

const placeAt = (bytes: Buffer, at: number, field: StateField): ValuePlace => ({
  bytes,
  address: at + ADDRESS_AT,
  slot: field === "slot" ? at + VALUE_BYTES : undefined,
  value: at + VALUE_AT,
});

/** Collects the content of one chunk. */
export class ChunkWriter {
  readonly #kind: ChunkKind;
  #bytes: Buffer;
  #end = PREFIX_BYTES;

  constructor(kind: ChunkKind) {
    this.#kind = kind;
    this.#bytes = Buffer.alloc(CHUNK_BYTES);
  }

  get isFull(): boolean {
    return this.#end + VALUE_BYTES + SLOT_BYTES > CHUNK_BYTES;
  }

  get isEmpty(): boolean {
    return this.#end === PREFIX_BYTES;
  }

  /** Adds a value. Returns the place to which it and its key must be copied. */
  addValue({ field, age, isUsed }: SnapshotValue): ValuePlace {
    const bytes = this.#bytes;
    const at = this.#end;
    const place = placeAt(bytes, at, field);
    bytes.writeUInt8(SNAPSHOT_FIELDS.indexOf(field) | (isUsed ? USED : 0), at);
    bytes.writeUInt16LE(Math.min(age, MAX_AGE), at + AGE_AT);
    this.#end = at + bytesOf(field);
    return place;
  }

  addCode({ hash: codeHash, code }: SnapshotCode): void {
    this.#reserve(HASH_BYTES + LENGTH_BYTES + code.length);
    let at = this.#end;
    at += this.#bytes.write(codeHash, at, "hex");
    at = this.#bytes.writeUInt32LE(code.length, at);
    this.#bytes.set(code, at);
    this.#end = at + code.length;
  }

  addText(text: string): void {
    this.#reserve(Buffer.byteLength(text));
    this.#end += this.#bytes.write(text, this.#end);
  }

  /** Returns the chunk with its checksum. */
  finish(id: number, number: number): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#end);
    bytes.writeUInt8(SNAPSHOT_FORMAT, 4);
    bytes.writeUInt8(KINDS[this.#kind], 5);
    bytes.writeUInt32LE(id, 6);
    bytes.writeUInt32LE(number, 10);
    bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0);
    return bytes;
  }

  #reserve(length: number): void {
    if (this.#end + length > this.#bytes.length) {
      const larger = Buffer.alloc(this.#end + length);
      larger.set(this.#bytes.subarray(0, this.#end));
      this.#bytes = larger;
    }
  }
}

export const writeHeader = (content: SnapshotHeader): Uint8Array => {
  const writer = new ChunkWriter("header");
  writer.addText(JSON.stringify(content));
  return writer.finish(content.id, 0);
};

/** A chunk whose checksum is right. */
export interface CheckedChunk {
  readonly kind: ChunkKind;
  readonly id: number;
  readonly number: number;
  readonly content: Buffer;
}

/** Throws DamagedSnapshot. */
export const readChunk = (chunk: Uint8Array): CheckedChunk => {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (bytes.length < PREFIX_BYTES || bytes.readUInt32LE(0) !== crc32(bytes.subarray(4))) {
    throw new DamagedSnapshot("a chunk has another checksum");
  }
  if (bytes.readUInt8(4) !== SNAPSHOT_FORMAT) {
    throw new DamagedSnapshot(`format ${bytes.readUInt8(4)} is not known`);
  }
  const kind = kindOf(bytes.readUInt8(5));
  return { kind, id: bytes.readUInt32LE(6), number: bytes.readUInt32LE(10), content: bytes.subarray(PREFIX_BYTES) };
};

const kindOf = (code: number): ChunkKind => {
  for (const kind of ["header", "values", "codes", "answers", "headers", "end"] as const) {
    if (KINDS[kind] === code) {
      return kind;
    }
  }
  throw new DamagedSnapshot(`chunk kind ${code} is not known`);
};

/** Throws DamagedSnapshot. */
export const readHeader = ({ kind, content, id, number }: CheckedChunk): SnapshotHeader => {
  const parsed = kind === "header" && number === 0 ? header.safeParse(parseJson(content)) : undefined;
  if (parsed?.success !== true || parsed.data.id !== id) {
    throw new DamagedSnapshot("the header is not complete");
  }
  return parsed.data;
};

const parseJson = (content: Buffer): unknown => {
  try {
    return JSON.parse(content.toString());
  } catch {
    throw new DamagedSnapshot("the header is no JSON");
  }
};

export const snapshotBlock = ({ number, hashes }: SnapshotHeader, age = 0): BlockId | undefined => {
  const hashAt = hashes[age];
  return hashAt && { number: BigInt(number) - BigInt(age), hash: hashAt };
};

/** Lists the values of a chunk. Throws DamagedSnapshot. */
export const readValues = function* ({ content }: CheckedChunk): Generator<PlacedValue, void> {
  let at = 0;
  while (at < content.length) {
    const code = content.readUInt8(at);
    const field = SNAPSHOT_FIELDS[code & ~USED];
    if (field === undefined || at + bytesOf(field) > content.length) {
      throw new DamagedSnapshot("a value is not complete");
    }
    yield {
      field,
      place: placeAt(content, at, field),
      age: content.readUInt16LE(at + AGE_AT),
      isUsed: (code & USED) !== 0,
    };
    at += bytesOf(field);
  }
};

/** Lists the codes of a chunk. Throws DamagedSnapshot. */
export const readCodes = function* ({ content }: CheckedChunk): Generator<SnapshotCode, void> {
  let at = 0;
  while (at < content.length) {
    const start = at + HASH_BYTES + LENGTH_BYTES;
    const end = start <= content.length ? start + content.readUInt32LE(at + HASH_BYTES) : Number.POSITIVE_INFINITY;
    if (end > content.length) {
      throw new DamagedSnapshot("a code is not complete");
    }
    yield { hash: content.toString("hex", at, at + HASH_BYTES), code: new Uint8Array(content.subarray(start, end)) };
    at = end;
  }
};

/** Lists the lines of a chunk of text. Throws DamagedSnapshot. */
export const readLines = function* ({ content }: CheckedChunk): Generator<string, void> {
  let start = 0;
  for (let end = content.indexOf(NEWLINE); end !== -1; end = content.indexOf(NEWLINE, start)) {
    yield content.toString("utf8", start, end);
    start = end + 1;
  }
  if (start !== content.length) {
    throw new DamagedSnapshot("a line is not complete");
  }
};
