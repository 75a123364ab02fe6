import { crc32 } from "node:zlib";
import { ADDRESS_BYTES, SLOT_BYTES, type TableField, VALUE_BYTES, type ValuePlace } from "./keyEncoder.ts";

/** `storage` ends the slots of an account that older rows have. `bytes`: a code. */
export type RowKind = TableField | "bytes" | "call";

/** In the order of their codes. */
const KINDS: readonly RowKind[] = ["slot", "balance", "nonce", "code", "storage", "bytes", "call"];
/** Of a row that ends an older one: the value is not known any more. */
const ENDED = 0x80;

/** Bytes of a block of stored rows. A code can make it larger. */
const BLOCK_BYTES = 64 * 1024;
const SUM_BYTES = 4;
/** Kind and length. */
const PREFIX_BYTES = 1 + 4;
/** Address, value, and the slot if there is one. */
const PLACE_BYTES = ADDRESS_BYTES + VALUE_BYTES;
const MAX_ROW_BYTES = PREFIX_BYTES + PLACE_BYTES + SLOT_BYTES;

const bytesOf = (field: TableField): number => PLACE_BYTES + (field === "slot" ? SLOT_BYTES : 0);

/** Rows that were changed, or cut. */
export class DamagedRows extends Error {
  override readonly name = "DamagedRows";
}

/** A value, or that it is not known any more. Of a code it is the hash. */
export interface ValueRow {
  readonly kind: TableField;
  readonly isEnded: boolean;
  readonly place: ValuePlace;
}

/** `bytes`: a code. */
interface ContentRow<Kind> {
  readonly kind: Kind;
  readonly content: Buffer;
}

export type Row = ValueRow | ContentRow<"bytes"> | ContentRow<"call">;

/** Returns where key and value of a row are. */
const placeAt = (bytes: Buffer, start: number, field: TableField): ValuePlace => ({
  ...{ bytes, address: start, value: start + ADDRESS_BYTES },
  slot: field === "slot" ? start + PLACE_BYTES : undefined,
});

/** Packs rows: those of what is known, and those of what a block wrote. */
export class RowWriter {
  #bytes = Buffer.alloc(BLOCK_BYTES);
  #end = SUM_BYTES;

  get isFull(): boolean {
    return this.#end + MAX_ROW_BYTES > BLOCK_BYTES;
  }

  get isEmpty(): boolean {
    return this.#end === SUM_BYTES;
  }

  /** Adds the row of a value. Returns the place to which it and its key must be copied. */
  addValue(field: TableField, isEnded: boolean): ValuePlace {
    const start = this.#add(field, isEnded, bytesOf(field));
    return placeAt(this.#bytes, start, field);
  }

  addBytes(kind: "bytes" | "call", content: Uint8Array): void {
    const start = this.#add(kind, false, content.length);
    this.#bytes.set(content, start);
  }

  /** Returns the rows, with a checksum. A copy, because a message to another thread has the whole memory of an array. */
  finish(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#end);
    bytes.writeUInt32LE(crc32(bytes.subarray(SUM_BYTES)), 0);
    return new Uint8Array(bytes);
  }

  /** Returns where the content begins. */
  #add(kind: RowKind, isEnded: boolean, length: number): number {
    const start = this.#end + PREFIX_BYTES;
    if (start + length > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes.subarray(0, this.#end)], 2 * (start + length));
    }
    this.#bytes.writeUInt8(KINDS.indexOf(kind) | (isEnded ? ENDED : 0), this.#end);
    this.#bytes.writeUInt32LE(length, this.#end + 1);
    this.#end = start + length;
    return start;
  }
}

/** Lists packed rows. Throws DamagedRows, before the first one unless somebody made the rows by hand. */
export const readRows = function* (rows: Uint8Array): Generator<Row, void> {
  const bytes = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength);
  if (bytes.length < SUM_BYTES || bytes.readUInt32LE(0) !== crc32(bytes.subarray(SUM_BYTES))) {
    throw new DamagedRows("packed rows have another checksum");
  }
  for (let at = SUM_BYTES; at < bytes.length; ) {
    const start = at + PREFIX_BYTES;
    const code = bytes.readUInt8(at);
    const kind = KINDS[code & ~ENDED];
    const end = start > bytes.length ? start : start + bytes.readUInt32LE(at + 1);
    if (kind === undefined || end > bytes.length) {
      throw new DamagedRows("a row is not complete");
    }
    if (kind === "bytes" || kind === "call") {
      yield { kind, content: bytes.subarray(start, end) };
    } else if (end - start === bytesOf(kind)) {
      yield { kind, isEnded: (code & ENDED) !== 0, place: placeAt(bytes, start, kind) };
    } else {
      throw new DamagedRows("a row has another length");
    }
    at = end;
  }
};
