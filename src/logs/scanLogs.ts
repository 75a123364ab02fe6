import { asBuffer, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipSpace } from "../json/jsonBytes.ts";
import { skipObjectUnchecked } from "../json/members.ts";

/** `0x` and 32 bytes. */
const HASH_LENGTH = 66;

/** The block hash of adjacent logs inside JSON text. It becomes a string when it is read for the first time. */
class BlockHash {
  readonly #text: Buffer;
  readonly #at: number;
  #value: string | undefined;

  /** The hash begins at `at`. */
  constructor(text: Buffer, at: number) {
    this.#text = text;
    this.#at = at;
  }

  get value(): string {
    this.#value ??= this.#text.toString("latin1", this.#at, this.#at + HASH_LENGTH);
    return this.#value;
  }

  /** Whether the same text has an equal hash at `at`. */
  isAt(at: number): boolean {
    for (let index = HASH_LENGTH - 1; index >= 0; index--) {
      if (this.#text[at + index] !== this.#text[this.#at + index]) {
        return false;
      }
    }
    return true;
  }
}

/**
 * One log inside JSON text; its other members are not parsed.
 * Numbers are plain, because that is fast and block numbers are below 2^53.
 */
export class ScannedLog {
  readonly text: Buffer;
  /** Bytes of the log's object in `text`. */
  readonly start: number;
  readonly end: number;
  readonly block: number;
  readonly index: number;
  /** The value of `blockTimestamp`; NaN if the node returned none. */
  readonly timestamp: number;
  /** Whether the node says that the log is not canonical any more. */
  readonly isRemoved: boolean;
  /** Positions of the values of `address` and `topics`; -1 for a missing one. */
  readonly address: number;
  readonly topics: number;
  readonly #hash: BlockHash;

  /** Copies the members that the scanner has read last: an object between them would cost as much as the log. */
  constructor(scanner: LogScanner, start: number, end: number, hash: BlockHash) {
    this.text = scanner.text;
    this.start = start;
    this.end = end;
    this.block = scanner.block;
    this.index = scanner.index;
    this.timestamp = scanner.timestamp;
    this.isRemoved = scanner.isRemoved;
    this.address = scanner.address;
    this.topics = scanner.topics;
    this.#hash = hash;
  }

  /** Whether the node returned `blockTimestamp`. */
  get hasTimestamp(): boolean {
    return !Number.isNaN(this.timestamp);
  }

  /** The block's hash. */
  get hash(): string {
    return this.#hash.value;
  }
}

const LOWER_A = 0x61;
const LOWER_T = 0x74;
const LOWER_X = 0x78;
const ZERO = 0x30;
/** A hash with its quotes. */
const QUOTED_HASH_LENGTH = 68;
/** More hex digits than 2^53 has. */
const MAX_DIGITS = 14;

const keyBytes = (name: string): Buffer => Buffer.from(name, "latin1");
const LOG_INDEX = keyBytes("logIndex");
/** With the closing quote: one name is longer than the other. */
const ADDRESS = keyBytes('address"');
const TOPICS = keyBytes('topics"');
const REMOVED = keyBytes('removed"');
const BLOCK_HASH = keyBytes("blockHash");
const BLOCK_NUMBER = keyBytes("blockNumber");
const BLOCK_TIMESTAMP = keyBytes("blockTimestamp");

const malformed = (at: number): SyntaxError => new SyntaxError(`Malformed list of logs at byte ${at}`);

/** Whether the text has these bytes at `at`. */
const hasBytes = (text: Buffer, at: number, bytes: Buffer): boolean => {
  for (let index = 0; index < bytes.length; index++) {
    if (text[at + index] !== bytes[index]) {
      return false;
    }
  }
  return true;
};

/** Returns the value of a hex digit, or NaN. */
const digitOf = (byte: number): number => {
  const digit = byte - ZERO;
  if (digit >= 0 && digit <= 9) {
    return digit;
  }
  // Upper and lower case differ in one bit.
  const letter = (byte | 0x20) - LOWER_A;
  return letter >= 0 && letter <= 5 ? letter + 10 : Number.NaN;
};

/** Reads a quoted hex number. Returns NaN for anything else, such as the `null` of a pending log. */
const readNumber = (text: Buffer, start: number, end: number): number => {
  const digits = end - start - 4;
  if (text[start] !== QUOTE || text[start + 2] !== LOWER_X || digits < 1 || digits > MAX_DIGITS) {
    return Number.NaN;
  }
  let number = 0;
  for (let at = start + 3; at < end - 1; at++) {
    number = number * 16 + digitOf(text[at] ?? 0);
  }
  return number;
};

/** Reads the logs of one text, one after the other. Its fields are those of the log that it read last. */
class LogScanner {
  readonly text: Buffer;
  block = Number.NaN;
  index = Number.NaN;
  /** The hash of the last log, or of a log before it. */
  #hash: BlockHash | undefined;
  #hasHash = false;
  timestamp = Number.NaN;
  isRemoved = false;
  address = -1;
  topics = -1;

  constructor(text: Buffer) {
    this.text = text;
  }

  /** Reads the log whose opening brace is at `start`. */
  read(start: number): ScannedLog {
    this.block = Number.NaN;
    this.index = Number.NaN;
    this.#hasHash = false;
    this.timestamp = Number.NaN;
    this.isRemoved = false;
    this.address = -1;
    this.topics = -1;
    const end = skipObjectUnchecked(this.text, start, this.#onMember);
    if (end < 0) {
      throw malformed(start);
    }
    const hash = this.#hasHash ? this.#hash : undefined;
    if (!Number.isSafeInteger(this.block) || !Number.isSafeInteger(this.index) || hash === undefined) {
      throw new SyntaxError("A log without blockNumber, blockHash or logIndex");
    }
    return new ScannedLog(this, start, end, hash);
  }

  /** The lengths of the wanted keys exclude most other keys without reading them. */
  readonly #onMember = (keyAt: number, keyEnd: number, valueAt: number, valueEnd: number): void => {
    const text = this.text;
    const name = keyAt + 1;
    switch (keyEnd - keyAt - 2) {
      case "topics".length:
      case "address".length:
        if (hasBytes(text, name, ADDRESS)) {
          this.address = valueAt;
        } else if (hasBytes(text, name, TOPICS)) {
          this.topics = valueAt;
        } else if (hasBytes(text, name, REMOVED)) {
          this.isRemoved = text[valueAt] === LOWER_T;
        }
        return;
      case LOG_INDEX.length:
        if (hasBytes(text, name, LOG_INDEX)) {
          this.index = readNumber(text, valueAt, valueEnd);
        }
        return;
      case BLOCK_HASH.length:
        if (hasBytes(text, name, BLOCK_HASH)) {
          this.#readHash(valueAt, valueEnd);
        }
        return;
      case BLOCK_NUMBER.length:
        if (hasBytes(text, name, BLOCK_NUMBER)) {
          this.block = readNumber(text, valueAt, valueEnd);
        }
        return;
      case BLOCK_TIMESTAMP.length:
        if (hasBytes(text, name, BLOCK_TIMESTAMP)) {
          this.timestamp = readNumber(text, valueAt, valueEnd);
        }
    }
  };

  /** Logs of one block share the hash. */
  #readHash(valueAt: number, valueEnd: number): void {
    this.#hasHash = valueEnd - valueAt === QUOTED_HASH_LENGTH;
    if (this.#hasHash && this.#hash?.isAt(valueAt + 1) !== true) {
      this.#hash = new BlockHash(this.text, valueAt + 1);
    }
  }
}

/** Reads logs from `start`, with commas between them. Returns the position after the last one. */
const readAll = (text: Buffer, start: number, logs: ScannedLog[]): number => {
  const scanner = new LogScanner(text);
  let at = start;
  while (text[at] === OPEN_BRACE) {
    const log = scanner.read(at);
    logs.push(log);
    at = skipSpace(text, log.end);
    if (text[at] !== COMMA) {
      break;
    }
    at = skipSpace(text, at + 1);
    if (text[at] !== OPEN_BRACE) {
      throw malformed(at);
    }
  }
  return at;
};

const ZERO_TIMESTAMP = '"blockTimestamp":"0x0"';

/**
 * Returns a node's text without timestamps of zero. geth 1.16.1 states them in receipts, and others in logs: go-ethereum issue 32334.
 * They count as not stated.
 */
export const withoutZeroTimestamps = (bytes: Uint8Array): Uint8Array => {
  const text = asBuffer(bytes);
  return text.includes(ZERO_TIMESTAMP)
    ? Buffer.from(
        text.toString("latin1").replaceAll(`${ZERO_TIMESTAMP},`, "").replaceAll(`,${ZERO_TIMESTAMP}`, ""),
        "latin1",
      )
    : bytes;
};

/**
 * Finds the logs in a node's list `[a,b]`, or in a cached segment `,a,b`.
 * Throws a SyntaxError if the text is neither, or if a log is not of a sealed block.
 */
export const scanLogs = (bytes: Uint8Array): ScannedLog[] => {
  const text = asBuffer(bytes);
  const logs: ScannedLog[] = [];
  const start = skipSpace(text, 0);
  if (start === text.length) {
    return logs;
  }
  const isList = text[start] === OPEN_BRACKET;
  if (!isList && text[start] !== COMMA) {
    throw malformed(start);
  }
  let at = readAll(text, isList ? skipSpace(text, start + 1) : start + 1, logs);
  if (isList) {
    if (text[at] !== CLOSE_BRACKET) {
      throw malformed(at);
    }
    at = skipSpace(text, at + 1);
  }
  if (at !== text.length) {
    throw malformed(at);
  }
  return logs;
};
