import { skipSpace } from "../json/endOfValue.ts";
import { asText, elements, isNull, members } from "../json/jsonScan.ts";

/** What one JSON-RPC response holds: the UTF-8 JSON text of its result or of its error object, cut out, not parsed. */
export type NodeResponse =
  | { readonly id: string; readonly result: Uint8Array }
  | { readonly id: string; readonly error: Uint8Array };

/** Below this a response is scanned whole; above, scanning alone would hold the event loop for milliseconds (1.5 ms a MiB). */
const SCAN_MAX_BYTES = 1024 * 1024;

const fromMembers = (bytes: Uint8Array): NodeResponse | undefined => {
  let id = "null";
  let result: Uint8Array | undefined;
  let error: Uint8Array | undefined;
  const all = members(bytes);
  let next = all.next();
  for (; !next.done; next = all.next()) {
    const { key, value } = next.value;
    if (key === "id") {
      id = asText(value);
    } else if (key === "result") {
      result = value;
    } else if (key === "error" && !isNull(value)) {
      error = value;
    }
  }
  if (next.value === false) {
    return undefined;
  }
  if (error) {
    return { id, error };
  }
  return result ? { id, result } : undefined;
};

/** Every order in which known nodes write the members around the result of a call with the id 1. */
const HEAD = /^\s*\{\s*(?:"(?:jsonrpc"\s*:\s*"2\.0"|id"\s*:\s*1)\s*,\s*)*"result"\s*:\s*/;
const TAIL = /(?:\s*,\s*"(?:jsonrpc"\s*:\s*"2\.0"|id"\s*:\s*1))*\s*\}\s*$/;
const EDGE_BYTES = 128;

const OPENERS = new Set([0x22, 0x5b, 0x7b]);

/**
 * A large result is everything between the envelope's two edges; undefined where they are not as known. JSON-RPC 2.0
 * (section 5) has no member but these three, so with both others seen outside, what is between them is the result.
 */
const fromEdges = (bytes: Uint8Array): NodeResponse | undefined => {
  const head = HEAD.exec(asText(bytes.subarray(0, EDGE_BYTES)));
  const edge = bytes.length - EDGE_BYTES;
  // Latin-1, so that one character is one byte even where the edge falls into a character.
  const tail = TAIL.exec(Buffer.from(bytes.buffer, bytes.byteOffset + edge, EDGE_BYTES).toString("latin1"));
  if (!head || !tail) {
    return undefined;
  }
  const start = head[0].length;
  const end = edge + tail.index;
  // In ASCII a closing bracket is two above the one that opens.
  const first = bytes[start] ?? 0;
  const last = bytes[end - 1] ?? 0;
  const closes = first === 0x22 ? last === 0x22 : last === first + 2;
  const outside = head[0] + tail[0];
  const isWhole = outside.includes("jsonrpc") && outside.includes("id");
  return isWhole && OPENERS.has(first) && closes ? { id: "1", result: bytes.subarray(start, end) } : undefined;
};

/** One response; undefined where it is no JSON-RPC response. */
export const parseNodeResponse = (bytes: Uint8Array): NodeResponse | undefined =>
  (bytes.length > SCAN_MAX_BYTES ? fromEdges(bytes) : undefined) ?? fromMembers(bytes);

/** The responses of a batch in the order they came; undefined where the answer is no list. */
export const parseBatchResponse = (bytes: Uint8Array): (NodeResponse | undefined)[] | undefined =>
  bytes[skipSpace(bytes, 0)] === 0x5b ? Array.from(elements(bytes), fromMembers) : undefined;
