import { CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "../json/jsonBytes.ts";
import { skipSpace } from "../json/skipSpace.ts";
import { skipObjectUnchecked } from "../json/skipUnchecked.ts";

/**
 * One log inside JSON text; its other members are not parsed.
 * Numbers are plain, because that is fast and block numbers are below 2^53.
 */
export interface ScannedLog {
  readonly text: Buffer;
  /** Bytes of the log's object in `text`. */
  readonly start: number;
  readonly end: number;
  readonly block: number;
  readonly index: number;
  readonly hash: string;
  /** Whether the node returned `blockTimestamp`. */
  readonly hasTimestamp: boolean;
  /** Positions of the values of `address` and `topics`; -1 for a missing one. */
  readonly address: number;
  readonly topics: number;
}

const LOWER_A = 0x61;
const LOWER_T = 0x74;

const malformed = (at: number): SyntaxError => new SyntaxError(`Malformed list of logs at byte ${at}`);

/** Reads a quoted hex number. Returns NaN for anything else, such as the `null` of a pending log. */
const readNumber = (text: Buffer, start: number, end: number): number => {
  if (text[start] !== QUOTE || end - start < 5) {
    return Number.NaN;
  }
  return Number(text.toString("latin1", start + 1, end - 1));
};

/** Reads the logs of one text, one after the other. Its fields are those of the log that it read last. */
class LogScanner {
  readonly #text: Buffer;
  #block = Number.NaN;
  #index = Number.NaN;
  #hash = "";
  #timed = false;
  #address = -1;
  #topics = -1;

  constructor(text: Buffer) {
    this.#text = text;
  }

  /** Reads the log whose opening brace is at `start`. */
  read(start: number): ScannedLog {
    this.#block = Number.NaN;
    this.#index = Number.NaN;
    this.#hash = "";
    this.#timed = false;
    this.#address = -1;
    this.#topics = -1;
    const end = skipObjectUnchecked(this.#text, start, this.#onMember);
    if (end < 0) {
      throw malformed(start);
    }
    if (!Number.isSafeInteger(this.#block) || !Number.isSafeInteger(this.#index) || this.#hash.length !== 66) {
      throw new SyntaxError("A log without blockNumber, blockHash or logIndex");
    }
    return {
      text: this.#text,
      start,
      end,
      block: this.#block,
      index: this.#index,
      hash: this.#hash,
      hasTimestamp: this.#timed,
      address: this.#address,
      topics: this.#topics,
    };
  }

  /** The lengths of the wanted keys exclude most other keys without reading them. */
  readonly #onMember = (keyAt: number, keyEnd: number, valueAt: number, valueEnd: number): void => {
    switch (keyEnd - keyAt - 2) {
      case "topics".length:
      case "address".length:
        if (this.#text[keyAt + 1] === LOWER_A) {
          this.#address = valueAt;
        } else if (this.#text[keyAt + 1] === LOWER_T) {
          this.#topics = valueAt;
        }
        return;
      case "logIndex".length:
      case "blockHash".length:
      case "blockNumber".length:
      case "blockTimestamp".length:
        this.#readBlockMember(this.#text.toString("latin1", keyAt + 1, keyEnd - 1), valueAt, valueEnd);
    }
  };

  #readBlockMember(key: string, valueAt: number, valueEnd: number): void {
    switch (key) {
      case "blockNumber":
        this.#block = readNumber(this.#text, valueAt, valueEnd);
        return;
      case "logIndex":
        this.#index = readNumber(this.#text, valueAt, valueEnd);
        return;
      case "blockHash":
        this.#hash = this.#text.toString("latin1", valueAt + 1, valueEnd - 1);
        return;
      case "blockTimestamp":
        this.#timed = this.#text[valueAt] === QUOTE;
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

/**
 * Finds the logs in a node's list `[a,b]`, or in a cached segment `,a,b`.
 * Throws a SyntaxError if the text is neither, or if a log is not of a sealed block.
 */
export const scanLogs = (bytes: Uint8Array): ScannedLog[] => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
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
