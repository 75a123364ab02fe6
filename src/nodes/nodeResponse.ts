import { asText, isNullText } from "../json/asText.ts";
import { elements, members } from "../json/members.ts";
import { skipSpace } from "../json/skipSpace.ts";

/** One JSON-RPC response: the unparsed UTF-8 JSON text of its result or of its error object. */
export type NodeResponse =
  | { readonly id: string; readonly result: Uint8Array }
  | { readonly id: string; readonly error: Uint8Array };

/** Smaller responses are scanned whole. For larger ones that would block the event loop for milliseconds (1.5 ms a MiB). */
const SCAN_MAX_BYTES = 1024 * 1024;

/** The same limit for a result that is verified afterwards: verification reads it to its end, often in a thread. */
const VERIFIED_SCAN_MAX_BYTES = 8 * 1024;

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
    } else if (key === "error" && !isNullText(value)) {
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

/** Matches every order in which nodes write the members around the result of a call with the id 1. */
const HEAD = /^\s*\{\s*(?:"(?:jsonrpc"\s*:\s*"2\.0"|id"\s*:\s*1)\s*,\s*)*"result"\s*:\s*/;
const TAIL = /(?:\s*,\s*"(?:jsonrpc"\s*:\s*"2\.0"|id"\s*:\s*1))*\s*\}\s*$/;
const EDGE_BYTES = 128;

const OPENERS = new Set([0x22, 0x5b, 0x7b]);

/**
 * Cuts a large result out of its envelope by matching the first and the last bytes only.
 * Returns undefined if the envelope has an unexpected form.
 * A JSON-RPC 2.0 response has three members: if the other two are in the edges, the rest is the result.
 * Source: https://www.jsonrpc.org/specification#response_object
 */
const fromEdges = (bytes: Uint8Array): NodeResponse | undefined => {
  const head = HEAD.exec(asText(bytes.subarray(0, EDGE_BYTES)));
  const edge = bytes.length - EDGE_BYTES;
  // In Latin-1 one character is one byte, even if the edge splits a UTF-8 character.
  const tail = TAIL.exec(Buffer.from(bytes.buffer, bytes.byteOffset + edge, EDGE_BYTES).toString("latin1"));
  if (!head || !tail) {
    return undefined;
  }
  const start = head[0].length;
  const end = edge + tail.index;
  // In ASCII the code of a closing bracket is the code of the opening one plus two.
  const first = bytes[start] ?? 0;
  const last = bytes[end - 1] ?? 0;
  const closes = first === 0x22 ? last === 0x22 : last === first + 2;
  const outside = head[0] + tail[0];
  const isWhole = outside.includes("jsonrpc") && outside.includes("id");
  return isWhole && OPENERS.has(first) && closes ? { id: "1", result: bytes.subarray(start, end) } : undefined;
};

/**
 * Parses one response; returns undefined if it is not a JSON-RPC response.
 * `isVerified`: the caller rejects a result that is not one JSON value.
 */
export const parseNodeResponse = (bytes: Uint8Array, isVerified = false): NodeResponse | undefined => {
  const maxScanned = isVerified ? VERIFIED_SCAN_MAX_BYTES : SCAN_MAX_BYTES;
  return (bytes.length > maxScanned ? fromEdges(bytes) : undefined) ?? fromMembers(bytes);
};

/** Parses the responses of a batch, in the order of the node; returns undefined if the text is not a list. */
export const parseBatchResponse = (bytes: Uint8Array): (NodeResponse | undefined)[] | undefined =>
  bytes[skipSpace(bytes, 0)] === 0x5b ? Array.from(elements(bytes), fromMembers) : undefined;
