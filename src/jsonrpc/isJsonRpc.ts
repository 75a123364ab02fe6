import { OPEN_BRACE, OPEN_BRACKET, QUOTE, skipSpace } from "../json/jsonBytes.ts";
import { skipArray, skipObject, skipValue } from "../json/skipValue.ts";
import { hasManyValues } from "./jsonLimits.ts";

const SPACE = 0x20;
const DELETE = 0x7f;
const SLASH = 0x2f;

/**
 * A key `method` has these letters in some case, or one of them as an escape sequence.
 * UTF-16 and UTF-32 have zeros between the characters.
 */
const NAMES_A_METHOD = /m\0*e\0*t\0*h\0*o\0*d|\\\0*u\0*0\0*0\0*[4-7]/i;

/** The bytes of the longest key that is read as `method`: each letter escaped, between quotes. */
const MAX_METHOD_KEY = 6 * "\\u006d".length + 2;

/**
 * Whether a text may begin a JSON-RPC request for some parser. Undefined while it has no byte that decides.
 * Parsers skip different white space and byte order marks, and some skip comments.
 */
export const mayBeginJsonRpc = (start: Uint8Array): boolean | undefined => {
  const first = start.find((byte) => byte > SPACE && byte < DELETE);
  return first === undefined ? undefined : first === OPEN_BRACE || first === OPEN_BRACKET || first === SLASH;
};

/** Whether a key is read as `method` by a parser that ignores case, as those of Go do. */
const isMethodKey = (body: Buffer, at: number, end: number): boolean =>
  end - at <= MAX_METHOD_KEY && String(JSON.parse(body.toString("utf8", at, end))).toLowerCase() === "method";

/** Calls `onRequest` for each object that has a method. Returns the position after the value, or a negative number. */
const scanItem = (body: Buffer, start: number, depth: number, onRequest: () => void): number =>
  body[start] === OPEN_BRACE
    ? skipObject(body, start, depth, (keyAt, keyEnd, valueAt) => {
        if (body[valueAt] === QUOTE && isMethodKey(body, keyAt, keyEnd)) {
          onRequest();
        }
      })
    : skipValue(body, start, depth);

/**
 * Whether some parser may read a JSON-RPC request in this body: an object with a string `method`, or an array of such objects.
 * A text that is not valid JSON is one if it names a method anywhere, because some parsers accept more than JSON.
 */
export const isJsonRpc = (body: Buffer): boolean => {
  if (!NAMES_A_METHOD.test(body.toString("latin1"))) {
    return false;
  }
  if (hasManyValues(body)) {
    return true;
  }
  let isRequest = false;
  const onRequest = (): void => {
    isRequest = true;
  };
  const start = skipSpace(body, 0);
  const end =
    body[start] === OPEN_BRACKET
      ? skipArray(body, start, 1, (_, at, depth) => scanItem(body, at, depth, onRequest))
      : scanItem(body, start, 1, onRequest);
  const isJson = end > 0 && skipSpace(body, end) === body.length;
  return isRequest || !isJson;
};
