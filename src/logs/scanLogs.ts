/** One log inside JSON text, found without parsing the rest of it. Block numbers stay below 2^53: plain numbers are fast. */
export interface ScannedLog {
  readonly text: Buffer;
  /** Bytes of the log's object in `text`. */
  readonly start: number;
  readonly end: number;
  readonly block: number;
  readonly index: number;
  readonly hash: string;
  /** Whether the node gave `blockTimestamp`. */
  readonly timed: boolean;
  /** Where the values of `address` and `topics` begin; -1 where the log has none. */
  readonly address: number;
  readonly topics: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;
const LOWER_A = 0x61;
const LOWER_T = 0x74;

/** Short strings are walked, the rest (a log's data) is left to memchr. */
const WALKED_BYTES = 72;

const malformed = (at: number): SyntaxError => new SyntaxError(`Malformed list of logs at byte ${at}`);

const skipSpace = (text: Buffer, from: number): number => {
  let at = from;
  while (at < text.length && (text[at] ?? 0) <= SPACE) at++;
  return at;
};

/** The place of the quote that ends the string which begins at `from`. */
const endOfString = (text: Buffer, from: number): number => {
  let at = from + 1;
  const walked = Math.min(text.length, at + WALKED_BYTES);
  for (; at < walked; at++) {
    const byte = text[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  for (;;) {
    const quote = text.indexOf(QUOTE, at);
    if (quote === -1) throw malformed(from);
    let slashes = 0;
    while (quote - 1 - slashes >= at && text[quote - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote;
    at = quote + 1;
  }
};

/** The place behind the value that begins at `from`. */
const endOfValue = (text: Buffer, from: number): number => {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const byte = text[at];
    if (byte === QUOTE) {
      at = endOfString(text, at);
      if (depth === 0) return at + 1;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth++;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      if (depth === 0) return at;
      depth--;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (byte === COMMA || (byte ?? 0) <= SPACE)) {
      return at;
    }
  }
  throw malformed(from);
};

/** A quoted hex number; NaN for anything else, such as the `null` of a log that is not sealed. */
const readNumber = (text: Buffer, start: number, end: number): number => {
  if (text[start] !== QUOTE || end - start < 5) return Number.NaN;
  return Number(text.toString("latin1", start + 1, end - 1));
};

const scanLog = (text: Buffer, start: number): ScannedLog => {
  let block = Number.NaN;
  let index = Number.NaN;
  let hash = "";
  let timed = false;
  let address = -1;
  let topics = -1;
  let at = skipSpace(text, start + 1);
  while (text[at] !== CLOSE_OBJECT) {
    if (text[at] !== QUOTE) throw malformed(at);
    const keyEnd = endOfString(text, at);
    const keyLength = keyEnd - at - 1;
    const colon = skipSpace(text, keyEnd + 1);
    if (text[colon] !== COLON) throw malformed(colon);
    const value = skipSpace(text, colon + 1);
    const valueEnd = endOfValue(text, value);
    // Six lengths stand for six names: most keys are told apart without reading them.
    if (keyLength === 6 || keyLength === 7) {
      if (text[at + 1] === LOWER_A) address = value;
      else if (text[at + 1] === LOWER_T) topics = value;
    } else if (keyLength === 8 || keyLength === 9 || keyLength === 11 || keyLength === 14) {
      const key = text.toString("latin1", at + 1, keyEnd);
      if (key === "blockNumber") block = readNumber(text, value, valueEnd);
      else if (key === "logIndex") index = readNumber(text, value, valueEnd);
      else if (key === "blockHash") hash = text.toString("latin1", value + 1, valueEnd - 1);
      else if (key === "blockTimestamp") timed = text[value] === QUOTE;
    }
    at = skipSpace(text, valueEnd);
    if (text[at] === COMMA) at = skipSpace(text, at + 1);
    else if (text[at] !== CLOSE_OBJECT) throw malformed(at);
  }
  if (!Number.isSafeInteger(block) || !Number.isSafeInteger(index) || hash.length !== 66) {
    throw new SyntaxError("A log without blockNumber, blockHash or logIndex");
  }
  return { text, start, end: at + 1, block, index, hash, timed, address, topics };
};

/** The logs of `[a,b]`, or of `,a,b` as segments are kept. Throws a SyntaxError for anything that is not a list of sealed logs. */
export const scanLogs = (bytes: Uint8Array): ScannedLog[] => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const logs: ScannedLog[] = [];
  let at = skipSpace(text, 0);
  const bracketed = text[at] === OPEN_LIST;
  if (bracketed) at = skipSpace(text, at + 1);
  else if (at < text.length && text[at++] !== COMMA) throw malformed(at);
  while (text[at] === OPEN_OBJECT) {
    const log = scanLog(text, at);
    logs.push(log);
    at = skipSpace(text, log.end);
    if (text[at] !== COMMA) break;
    at = skipSpace(text, at + 1);
    if (text[at] !== OPEN_OBJECT) throw malformed(at);
  }
  if (bracketed) {
    if (text[at] !== CLOSE_LIST) throw malformed(at);
    at = skipSpace(text, at + 1);
  }
  if (at !== text.length) throw malformed(at);
  return logs;
};
