import { createRequire } from "node:module";
import type { DataHandledable } from "ioredis/built/DataHandler.js";
import type { Decoder } from "ioredis/built/resp/decoder.js";
import { maxPieces } from "../limits/pieces.ts";
import { MAX_PLAIN_BYTES } from "./redisValue.ts";

/** The largest value is an incompressible body with its header. A longer line is not a reply of Redis either. */
const MAX_VALUE_BYTES = MAX_PLAIN_BYTES + 1024 * 1024;
/** All values of one reply. A read has at most 128 keys. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;
const MAX_ITEMS = 1_000_000;

const codeOf = (character: string): number => character.charCodeAt(0);
const LINE_FEED = codeOf("\n");
const MINUS = codeOf("-");
const ZERO = codeOf("0");
/** Types with a length of bytes: bulk string, verbatim string, bulk error. */
const BYTES_TYPES: ReadonlySet<number> = new Set(["$", "=", "!"].map(codeOf));
/** Types with a number of items, and the values of one item: array, set, push, map. */
const ITEM_VALUES: ReadonlyMap<number, number> = new Map([
  [codeOf("*"), 1],
  [codeOf("~"), 1],
  [codeOf(">"), 1],
  [codeOf("%"), 2],
]);
/** The end of a line after the bytes of a value. */
const END_BYTES = 2;

/**
 * Reads the lengths that replies of Redis claim (RESP2 and RESP3), in the chunks of one connection.
 * It skips the values, so its cost depends on their number only.
 */
class RedisReplySize {
  /** Values of the reply that have not begun. */
  #missing = 0;
  #replyBytes = 0;
  /** Chunks and bytes in which the reply has arrived. ioredis holds each chunk. */
  #chunks = 0;
  #receivedBytes = 0;
  /** Bytes of a value that are skipped. */
  #skip = 0;
  /** The type of the line that is read. Undefined between lines. */
  #type: number | undefined;
  #lineBytes = 0;
  #length = 0;
  #isNegative = false;

  /** Throws RangeError if a reply claims more than a value of forebay can need. */
  check(chunk: Uint8Array): void {
    this.#chunks++;
    this.#receivedBytes += chunk.length;
    requireSize(this.#chunks <= maxPieces(this.#receivedBytes), `a reply in ${this.#chunks} pieces`);
    let at = 0;
    while (at < chunk.length) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, chunk.length - at);
        this.#skip -= skipped;
        at += skipped;
      } else {
        this.#readByte(chunk[at] ?? 0);
        at++;
      }
    }
  }

  #readByte(byte: number): void {
    if (this.#type === undefined) {
      this.#beginLine(byte);
    } else if (byte === LINE_FEED) {
      this.#endLine(this.#type);
    } else if (byte === MINUS) {
      this.#isNegative = true;
    } else if (byte >= ZERO && byte < ZERO + 10) {
      this.#length = this.#length * 10 + byte - ZERO;
    }
    this.#lineBytes++;
    requireSize(this.#lineBytes <= MAX_VALUE_BYTES, `a line of ${this.#lineBytes} bytes`);
  }

  #beginLine(type: number): void {
    if (this.#missing === 0) {
      this.#missing = 1;
      this.#replyBytes = 0;
      this.#chunks = 0;
      this.#receivedBytes = 0;
    }
    this.#type = type;
    this.#lineBytes = 0;
    this.#length = 0;
    this.#isNegative = false;
  }

  #endLine(type: number): void {
    const length = this.#isNegative ? 0 : this.#length;
    this.#missing--;
    if (BYTES_TYPES.has(type) && !this.#isNegative) {
      requireSize(length <= MAX_VALUE_BYTES, `a value of ${length} bytes`);
      this.#replyBytes += length;
      requireSize(this.#replyBytes <= MAX_REPLY_BYTES, `a reply of more than ${MAX_REPLY_BYTES} bytes`);
      this.#skip = length + END_BYTES;
    }
    this.#missing += length * (ITEM_VALUES.get(type) ?? 0);
    requireSize(this.#missing <= MAX_ITEMS, `a list of ${length} items`);
    this.#type = undefined;
  }
}

const requireSize = (isAllowed: boolean, claim: string): void => {
  if (!isAllowed) {
    throw new RangeError(`Redis sent ${claim}`);
  }
};

const require = createRequire(import.meta.url);

/** The part of ioredis that reads the replies of one connection. */
interface Connection {
  readonly redis: DataHandledable;
}

/** The lengths in the replies of one connection. Undefined after a reply that ended it. */
type Sizes = RedisReplySize | undefined;

/** Marks a prototype whose methods are replaced. */
const GUARDED = Symbol("guarded");

/**
 * Makes each reply of Redis that ioredis cannot read end its connection. The client connects again.
 * Without it, ioredis 6 throws such an error where nothing can catch it, and the process ends. It also buffers a value of any size.
 * The parser has no option for either, so its methods are replaced.
 */
export const guardRedisReplies = (): void => {
  const { default: DataHandler }: typeof import("ioredis/built/DataHandler.js") = require("ioredis/built/DataHandler");
  const { Decoder }: typeof import("ioredis/built/resp/decoder.js") = require("ioredis/built/resp/decoder");
  if (Object.hasOwn(Decoder.prototype, GUARDED)) {
    return;
  }
  const sizes = new WeakMap<Decoder, Sizes>();
  const { write } = Decoder.prototype;
  Object.assign(Decoder.prototype, {
    [GUARDED]: true,
    write(this: Decoder, chunk: Uint8Array): void {
      const size: Sizes = sizes.has(this) ? sizes.get(this) : new RedisReplySize();
      if (size === undefined) {
        // Later replies of an ended connection would answer commands of the next one.
        return;
      }
      sizes.set(this, undefined);
      size.check(chunk);
      write.call(this, chunk);
      sizes.set(this, size);
    },
  });
  Object.assign(DataHandler.prototype, {
    /** The error unwinds the decoder, whose caller ends the connection. */
    dispatch(handle: () => void): void {
      handle();
    },
    returnFatalError(this: Connection, error: Error): void {
      const { stream } = this.redis;
      this.redis.recoverFromFatalError(error, error, { offlineQueue: false });
      // ioredis ends the stream, and would read for two more seconds.
      stream.destroy();
    },
  });
};
