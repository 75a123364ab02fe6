import { asBuffer } from "../json/jsonBytes.ts";

/** What JsonItems are made of. An item that is undefined has no text. */
export interface ItemTexts {
  readonly head: string;
  readonly items: readonly (string | undefined)[];
  readonly tail: string;
  /** Whether the text as a whole may be returned. */
  readonly isWhole: boolean;
}

/** In front of the text: the number of items, whether it is whole, and the start and the end of each item. */
const PLACES_AT = 8;
const PLACE_BYTES = 8;
const BYTES_OF_NUMBER = 4;

/** The JSON text of a list or of an object that ends with one, with the place of each item, in one piece of memory. */
export class JsonItems {
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  /** `bytes`: of `packItems`. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The number of items, also of those without a text. */
  get length(): number {
    return this.#view.getUint32(0);
  }

  /** The text with all items that have one, in the same memory. */
  get text(): Uint8Array {
    return this.bytes.subarray(PLACES_AT + PLACE_BYTES * this.length);
  }

  /** The text, if it may be returned as a whole. */
  get whole(): Uint8Array | undefined {
    return this.#view.getUint32(BYTES_OF_NUMBER) === 1 ? this.text : undefined;
  }

  /** Returns the text of an item, in the same memory. Undefined if it has none. */
  at(index: number): Buffer | undefined {
    const place = PLACES_AT + PLACE_BYTES * index;
    const start = this.#view.getUint32(place);
    const end = this.#view.getUint32(place + BYTES_OF_NUMBER);
    return start === end ? undefined : asBuffer(this.bytes).subarray(start, end);
  }

  /** Returns the index of the item with that text, or -1. */
  indexOf(text: string): number {
    const wanted = Buffer.from(text);
    for (let index = 0; index < this.length; index++) {
      if (this.at(index)?.equals(wanted) === true) {
        return index;
      }
    }
    return -1;
  }
}

/** Returns the bytes of JsonItems. */
export const packItems = ({ head, items, tail, isWhole }: ItemTexts): Uint8Array<ArrayBuffer> => {
  const textAt = PLACES_AT + PLACE_BYTES * items.length;
  // A comma for each item is one too many.
  const itemBytes = items.reduce((sum, item) => sum + (item === undefined ? 0 : Buffer.byteLength(item) + 1), 0);
  const bytes = Buffer.alloc(textAt + Buffer.byteLength(head) + Math.max(0, itemBytes - 1) + Buffer.byteLength(tail));
  bytes.writeUInt32BE(items.length, 0);
  bytes.writeUInt32BE(isWhole ? 1 : 0, BYTES_OF_NUMBER);
  let at = textAt + bytes.write(head, textAt);
  const firstAt = at;
  for (const [index, item] of items.entries()) {
    const start = item === undefined || at === firstAt ? at : at + bytes.write(",", at);
    at = item === undefined ? at : start + bytes.write(item, start);
    bytes.writeUInt32BE(start, PLACES_AT + PLACE_BYTES * index);
    bytes.writeUInt32BE(item === undefined ? start : at, PLACES_AT + PLACE_BYTES * index + BYTES_OF_NUMBER);
  }
  bytes.write(tail, at);
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
};
