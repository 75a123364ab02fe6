import { crc32 } from "node:zlib";
import { ADDRESS_BYTES, SLOT_BYTES, type TableField, type ValuePlace } from "../store/keyEncoder.ts";

/** `storage` ends the slots of an account that older rows have. `bytes`: a code. */
export type RowKind = TableField | "bytes" | "call";

/** In the order of their codes. */
const KINDS: readonly RowKind[] = ["slot", "balance", "nonce", "code", "storage", "bytes", "call"];
/** Of a row that ends an older one: the value is not known any more. */
const ENDED = 0x80;

/** Bytes of a block of rows. A code can make it larger. */
const BLOCK_BYTES = 64 * 1024;
const SUM_BYTES = 4;
/** Kind and length. */
const PREFIX_BYTES = 1 + 4;
const VALUE_BYTES = 32;
/** Address, value, and the slot if there is one. */
const PLACE_BYTES = ADDRESS_BYTES + VALUE_BYTES;
const MAX_ROW_BYTES = PREFIX_BYTES + PLACE_BYTES + SLOT_BYTES;

const bytesOf = (field: TableField): number => PLACE_BYTES + (field === "slot" ? SLOT_BYTES : 0);

/** Whether the content of a row can have this length. */
const mayHave = (kind: RowKind, length: number): boolean =>
  kind === "bytes" || kind === "call" || length === bytesOf(kind);

/** Rows that were changed, or cut. */
export class DamagedRows extends Error {
  override readonly name = "DamagedRows";
}

export interface Row {
  readonly kind: RowKind;
  readonly isEnded: boolean;
  readonly content: Buffer;
}

/** Returns where key and value are in the content of a row. */
export const placeIn = (content: Buffer): ValuePlace => ({
  bytes: content,
  address: 0,
  value: ADDRESS_BYTES,
  slot: content.length > PLACE_BYTES ? PLACE_BYTES : undefined,
});

/** Collects a block of rows. */
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
    return placeIn(this.#add(field, isEnded, bytesOf(field)));
  }

  addBytes(kind: "bytes" | "call", content: Uint8Array): void {
    this.#add(kind, false, content.length).set(content);
  }

  /** Returns the block, with a checksum. */
  finish(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#end);
    bytes.writeUInt32LE(crc32(bytes.subarray(SUM_BYTES)), 0);
    return bytes;
  }

  #add(kind: RowKind, isEnded: boolean, length: number): Buffer {
    const start = this.#end + PREFIX_BYTES;
    if (start + length > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes.subarray(0, this.#end), Buffer.alloc(PREFIX_BYTES + length)]);
    }
    this.#bytes.writeUInt8(KINDS.indexOf(kind) | (isEnded ? ENDED : 0), this.#end);
    this.#bytes.writeUInt32LE(length, this.#end + 1);
    this.#end = start + length;
    return this.#bytes.subarray(start, this.#end);
  }
}

/** Lists the rows of a block. Throws DamagedRows before the first one. */
export const readRows = function* (block: Uint8Array): Generator<Row, void> {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  if (bytes.length < SUM_BYTES || bytes.readUInt32LE(0) !== crc32(bytes.subarray(SUM_BYTES))) {
    throw new DamagedRows("a block of rows has another checksum");
  }
  for (let at = SUM_BYTES; at < bytes.length; ) {
    const start = at + PREFIX_BYTES;
    const code = bytes.readUInt8(at);
    const kind = KINDS[code & ~ENDED];
    const end = start > bytes.length ? start : start + bytes.readUInt32LE(at + 1);
    if (kind === undefined || end > bytes.length || !mayHave(kind, end - start)) {
      throw new DamagedRows("a row is not complete");
    }
    yield { kind, isEnded: (code & ENDED) !== 0, content: bytes.subarray(start, end) };
    at = end;
  }
};
