import { NodeError } from "../core/node.ts";
import { asText, isNullText, OPEN_BRACE, OPEN_BRACKET, skipSpace } from "../json/jsonBytes.ts";
import { elements, skipObjectUnchecked } from "../json/members.ts";
import { isJson } from "../verification/checkBody.ts";
import { mayQuote } from "./errorKind.ts";
import { type HttpReply, PostError } from "./httpPost.ts";
import { type NodeErrors, parseRetryAfter } from "./nodeErrors.ts";

/** The outcomes of a batch, in the order of its calls; undefined for a call that has no response. */
export type BatchOutcomes = readonly (Uint8Array | NodeError | undefined)[];

/** A call whose reply is read. */
interface RepliedCall {
  readonly call: { readonly method: string };
}

/** Whether a response has the id. The error of a whole request may have the id `null` (JSON-RPC 2.0, section 5). */
const hasId = (response: NodeResponse, id: number): boolean =>
  response.id === String(id) || ("error" in response && response.id === "null");

/** Turns the HTTP replies of one node into results or errors. */
export class ReplyReader {
  readonly #errors: NodeErrors;
  readonly #verifies: boolean;

  /** `verifies`: whether the id and the status of a reply, and the results of a batch, are checked. */
  constructor(errors: NodeErrors, verifies: boolean) {
    this.#errors = errors;
    this.#verifies = verifies;
  }

  /** The seconds of Retry-After of a node that refuses requests; undefined if it names none. */
  retryAfterSeconds(reply: HttpReply | PostError): number | undefined {
    const refuses = !(reply instanceof PostError) && (reply.status === 429 || reply.status === 503);
    return refuses ? parseRetryAfter(reply.retryAfter) : undefined;
  }

  /** Returns the result of the call with that id. `isCheckedLater`: the caller rejects a result that is not one JSON value. */
  readOne(
    reply: HttpReply | PostError,
    id: number,
    { call }: RepliedCall,
    isCheckedLater: boolean,
  ): Uint8Array | NodeError {
    return reply instanceof PostError
      ? this.#errors.ofPost(reply)
      : this.#read(parseNodeResponse(reply.body, isCheckedLater), reply, id, call.method);
  }

  /** Returns the outcomes of the calls, whose ids are their positions, or one error if the node answered none of them. */
  readBatch(
    reply: HttpReply | PostError,
    calls: readonly RepliedCall[],
    isCheckedLater: boolean,
  ): BatchOutcomes | NodeError {
    if (reply instanceof PostError) {
      return this.#errors.ofPost(reply);
    }
    const responses = parseBatchResponse(reply.body);
    if (!responses) {
      return this.#batchError(reply);
    }
    // Most nodes respond in the order of the calls, and some in another.
    const isInOrder = responses.every((response, index) => response?.id === String(index));
    const byId = isInOrder ? undefined : new Map(responses.map((response) => [response?.id, response]));
    return calls.map(({ call }, index) => {
      const response = byId === undefined ? responses[index] : byId.get(String(index));
      if (response === undefined) {
        return undefined;
      }
      const outcome = this.#read(response, reply, index, call.method);
      // The results of a batch are small, so each is scanned whole.
      return !this.#verifies || isCheckedLater || outcome instanceof NodeError || isJson(outcome)
        ? outcome
        : this.#errors.unverified("json");
    });
  }

  /** `response` is undefined if the reply is not JSON-RPC, and `method` if the reply is that of a whole batch. */
  #read(
    response: NodeResponse | undefined,
    http: HttpReply,
    id: number,
    method: string | undefined,
  ): Uint8Array | NodeError {
    // A batch has only calls whose parameters were parsed. An error of all of them quotes none.
    const isQuoting = method !== undefined && mayQuote(method);
    if (response === undefined) {
      return this.#errors.ofInvalidReply(http, isQuoting);
    }
    if (this.#verifies && !hasId(response, id)) {
      return this.#errors.unverified("id");
    }
    if ("error" in response) {
      return this.#errors.ofErrorObject(response.error, http, isQuoting);
    }
    const isSuccess = http.status >= 200 && http.status < 300;
    return this.#verifies && !isSuccess ? this.#errors.unverified("status") : response.result;
  }

  /** A single response to a batch is an error of all its calls, whatever its id. */
  #batchError(http: HttpReply): NodeError {
    const response = parseNodeResponse(http.body);
    const outcome = this.#read(response && { ...response, id: "0" }, http, 0, undefined);
    return outcome instanceof NodeError
      ? outcome
      : this.#errors.create("invalidAnswer", "the response to a batch is not a list");
  }
}

/** One JSON-RPC response: the unparsed UTF-8 JSON text of its result or of its error object. */
type NodeResponse =
  | { readonly id: string; readonly result: Uint8Array }
  | { readonly id: string; readonly error: Uint8Array };

/** Smaller responses are scanned whole. For larger ones that would block the event loop for milliseconds (1.5 ms a MiB). */
const SCAN_MAX_BYTES = 1024 * 1024;

/** The same limit for a result that is verified afterwards: verification reads it to its end, often in a thread. */
const VERIFIED_SCAN_MAX_BYTES = 8 * 1024;

/** Whether the member's name, quotes included, is `name`. A name of a JSON-RPC response contains no escape. */
const isNamed = (bytes: Uint8Array, keyAt: number, keyEnd: number, name: string): boolean => {
  if (keyEnd - keyAt !== name.length + 2) {
    return false;
  }
  for (let index = 0; index < name.length; index++) {
    if (bytes[keyAt + 1 + index] !== name.charCodeAt(index)) {
      return false;
    }
  }
  return true;
};

const fromMembers = (bytes: Uint8Array): NodeResponse | undefined => {
  let id = "null";
  let result: Uint8Array | undefined;
  let error: Uint8Array | undefined;
  const start = skipSpace(bytes, 0);
  if (bytes[start] !== OPEN_BRACE) {
    return undefined;
  }
  const end = skipObjectUnchecked(bytes, start, (keyAt, keyEnd, valueAt, valueEnd) => {
    const value = bytes.subarray(valueAt, valueEnd);
    if (isNamed(bytes, keyAt, keyEnd, "id")) {
      id = asText(value);
    } else if (isNamed(bytes, keyAt, keyEnd, "result")) {
      result = value;
    } else if (isNamed(bytes, keyAt, keyEnd, "error") && !isNullText(value)) {
      error = value;
    }
  });
  if (end < 0) {
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
 * `isCheckedLater`: the caller rejects a result that is not one JSON value.
 */
export const parseNodeResponse = (bytes: Uint8Array, isCheckedLater = false): NodeResponse | undefined => {
  const maxScanned = isCheckedLater ? VERIFIED_SCAN_MAX_BYTES : SCAN_MAX_BYTES;
  return (bytes.length > maxScanned ? fromEdges(bytes) : undefined) ?? fromMembers(bytes);
};

/** Parses the responses of a batch, in the order of the node; returns undefined if the text is not a list. */
export const parseBatchResponse = (bytes: Uint8Array): (NodeResponse | undefined)[] | undefined =>
  bytes[skipSpace(bytes, 0)] === OPEN_BRACKET ? Array.from(elements(bytes), fromMembers) : undefined;
