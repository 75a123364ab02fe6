import type { BlockId } from "../../core/heads.ts";
import { formatStoredCall, parseStoredCall, type StoredCall } from "../calls/storedCall.ts";
import { runSliced } from "../runSliced.ts";
import { keyName, type StateField, ZERO_VALUE } from "../stateKey.ts";
import { keyAt, type ValuePlace } from "../store/keyEncoder.ts";
import { DamagedRows, type Row, RowWriter, readRows, type ValueRow } from "../store/packedRows.ts";
import type { ValueStore } from "../store/valueStore.ts";

/** Codes and calls that have a row. They never change. */
export interface WrittenRows {
  /** Hashes of codes. */
  readonly codes: Set<string>;
  /** Texts of calls. */
  readonly calls: Set<string>;
}

interface PackedState {
  readonly values: ValueStore;
  calls(): Iterator<StoredCall | undefined>;
}

interface PackOptions {
  /** The block of the rows to which these are added. Undefined: all rows are written. */
  readonly since: BlockId | undefined;
  readonly written: WrittenRows;
  /** If all rows are written, values that do not fit get a row when they change. */
  readonly maxBytes: number;
}

/** Adds the row of a value, if it has one. Returns the further steps of a slice that this took. */
type AddRow<T> = (writer: RowWriter, value: T) => number;

/** Packs what changed into blocks of rows, in slices, at a readable block. Write sets of later blocks may be applied meanwhile. */
export const packRows = async function* (
  { values, calls }: PackedState,
  block: BlockId,
  { since, written, maxBytes }: PackOptions,
): AsyncGenerator<Uint8Array, void> {
  let left = since === undefined ? maxBytes : Number.POSITIVE_INFINITY;
  const packed = async function* <T>(listed: Iterator<T | undefined>, add: AddRow<T>) {
    for (let isLast = false; !isLast; ) {
      const writer = new RowWriter();
      isLast = await runSliced(fill(writer, listed, add));
      const rows = writer.finish();
      if (!writer.isEmpty && left > rows.length) {
        left -= rows.length;
        yield rows;
      }
    }
  };
  if (since !== undefined) {
    // They end older rows, not those of the same save, which come later.
    yield* packed(values.clearedSince(since, block), (writer, { entry, field, isKnown }) => {
      values.copyTo({ entry }, writer.addValue(field, !isKnown));
      return 0;
    });
  }
  const codes: string[] = [];
  yield* packed(values.takeChanges(block, since === undefined), (writer, { entry, field, isKnown }) => {
    values.copyTo({ entry }, writer.addValue(field, !isKnown));
    if (field === "code" && isKnown) {
      codes.push(values.valueAt(entry));
    }
    return 0;
  });
  yield* packed(codes.values(), (writer, hash) => {
    const code = hash === ZERO_VALUE || written.codes.has(hash) ? undefined : values.code(hash);
    if (code !== undefined) {
      writer.addBytes("bytes", code);
      written.codes.add(hash);
    }
    return 0;
  });
  yield* packed(calls(), (writer, call) => {
    if (written.calls.has(call.key)) {
      return 0;
    }
    writer.addBytes("call", formatStoredCall(call));
    written.calls.add(call.key);
    return call.reads.keys.length;
  });
};

/** Adds listed rows until the block of rows is full. Returns whether none is left. */
const fill = function* <T>(
  writer: RowWriter,
  listed: Iterator<T | undefined>,
  add: AddRow<T>,
): Generator<void, boolean> {
  while (!writer.isFull) {
    const next = listed.next();
    if (next.done === true) {
      return true;
    }
    if (next.value !== undefined) {
      for (let steps = add(writer, next.value); steps > 0; steps--) {
        yield;
      }
    }
    yield;
  }
  return false;
};

/** Adds the rows of a chain to its values, the newest block of rows first: older rows of a key do not count. */
export class RowsReader {
  readonly written: WrittenRows = { codes: new Set(), calls: new Set() };
  readonly calls: StoredCall[] = [];
  readonly #values: ValueStore;
  readonly #block: BlockId | undefined;
  /** Names of keys and addresses whose older rows do not count. */
  readonly #ended = new Set<string>();
  #count = 0;

  /** `block`: at which values are known. Undefined: only codes are restored. */
  constructor(values: ValueStore, block: BlockId | undefined) {
    this.#values = values;
    this.#block = block;
  }

  get counts() {
    return { values: this.#count, codes: this.written.codes.size, calls: this.calls.length };
  }

  /** Adds a block of rows, one a step. Throws DamagedRows if it is missing or damaged. */
  *read(rows: Uint8Array | undefined): Generator<void, void> {
    if (rows === undefined) {
      throw new DamagedRows("a block of rows is missing");
    }
    for (const row of readRows(rows)) {
      this.#add(row);
      yield;
    }
  }

  #add(row: Row): void {
    if (row.kind === "bytes") {
      // Its hash is computed: it names the code.
      this.written.codes.add(this.#values.storeCode(row.content));
    } else if (this.#block === undefined) {
      return;
    } else if (row.kind === "call") {
      const call = parseStoredCall(row.content);
      if (call !== undefined && !this.written.calls.has(call.key)) {
        this.written.calls.add(call.key);
        this.calls.push(call);
      }
    } else {
      this.#addValue(row, this.#block);
    }
  }

  #addValue({ kind, isEnded, place }: ValueRow, block: BlockId): void {
    if (kind === "storage") {
      this.#ended.add(keyAt(kind, place).address);
    } else if (isEnded) {
      this.#ended.add(keyName(keyAt(kind, place)));
    } else if (!this.#hasEnded(kind, place) && this.#values.restore(kind, place, block)) {
      this.#count++;
    }
  }

  #hasEnded(kind: StateField, place: ValuePlace): boolean {
    if (this.#ended.size === 0) {
      return false;
    }
    const key = keyAt(kind, place);
    return (kind === "slot" && this.#ended.has(key.address)) || this.#ended.has(keyName(key));
  }
}
