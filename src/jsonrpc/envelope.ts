import { isUtf8 } from "node:buffer";
import { asBuffer, LETTER_N, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipSpace } from "../json/jsonBytes.ts";
import { MAX_DEPTH, skipArray, skipObject, skipValue, TOO_DEEP } from "../json/skipValue.ts";
import type { Call } from "./call.ts";
import { hasManyValues, MAX_VALUES, MemberBudget } from "./jsonLimits.ts";
import { CODES, invalidParams, invalidRequest, RpcError } from "./rpcError.ts";

/**
 * One request object. `id` is its unchanged bytes. A request without an id is a notification, which gets no response.
 */
export type Item =
  | { readonly id: Uint8Array | undefined; readonly call: Call }
  | { readonly id: Uint8Array | undefined; readonly error: RpcError };

export interface Envelope {
  readonly batch: boolean;
  readonly items: readonly Item[];
}

/** The id of a response if the request's id cannot be read (JSON-RPC 2.0, section 5). */
export const NULL_ID: Uint8Array = Buffer.from("null");
const NO_PARAMS = Buffer.from("[]");
/** The end of a scan at the first call above the limit. */
const TOO_MANY = -100;

const textOf = (body: Buffer, at: number, end: number): string => {
  const text = body.toString("utf8", at + 1, end - 1);
  return text.includes("\\") ? JSON.parse(`"${text}"`) : text;
};

/**
 * A call that parses its params on first use. Many responses need only their text.
 * A class, because V8 creates a hidden class for every object literal with a getter.
 * That cost more than the rest of parsing.
 */
class LazyCall implements Call {
  readonly method: string;
  readonly #body: Buffer;
  readonly #paramsAt: number;
  readonly #paramsEnd: number;
  #params: readonly unknown[] | undefined;
  #paramsJson: string | undefined;

  constructor(method: string, body: Buffer, paramsAt: number, paramsEnd: number) {
    this.method = method;
    this.#body = body;
    this.#paramsAt = paramsAt;
    this.#paramsEnd = paramsEnd;
  }

  get paramsText(): Uint8Array {
    return this.#body.subarray(this.#paramsAt, this.#paramsEnd);
  }

  get paramsBytes(): number {
    return this.#paramsEnd - this.#paramsAt;
  }

  get paramsJson(): string {
    this.#paramsJson ??= this.#body.toString("utf8", this.#paramsAt, this.#paramsEnd);
    return this.#paramsJson;
  }

  get params(): readonly unknown[] {
    this.#params ??= JSON.parse(this.paramsJson) as unknown[];
    return this.#params;
  }
}

/** A call of a large body. Its params are parsed only if that does not hold the event loop. */
class LimitedCall extends LazyCall {
  #budget: MemberBudget | undefined;

  constructor(budget: MemberBudget, ...call: ConstructorParameters<typeof LazyCall>) {
    super(...call);
    this.#budget = budget;
  }

  /** Throws RpcError above a limit. */
  override get params(): readonly unknown[] {
    this.#budget?.take(this.paramsText);
    this.#budget = undefined;
    return super.params;
  }
}

/** A smaller body is parsed in time, whatever it contains. */
const UNLIMITED_BYTES = 64 * 1024;

/** The requests of one body. */
interface Requests {
  readonly items: Item[];
  /** Undefined for a small body. */
  readonly budget: MemberBudget | undefined;
}

const startsWith = (body: Buffer, at: number, expected: string): boolean => {
  for (let index = 0; index < expected.length; index++) {
    if (body[at + index] !== expected.charCodeAt(index)) {
      return false;
    }
  }
  return true;
};

/** Returns the text of a key. The four known keys are recognised by their bytes, without creating a string. */
const keyOf = (body: Buffer, at: number, end: number): string => {
  const length = end - at - 2;
  if (length === 2 && startsWith(body, at + 1, "id")) {
    return "id";
  }
  if (length === 6 && startsWith(body, at + 1, "method")) {
    return "method";
  }
  if (length === 6 && startsWith(body, at + 1, "params")) {
    return "params";
  }
  if (length === 7 && startsWith(body, at + 1, "jsonrpc")) {
    return "jsonrpc";
  }
  return textOf(body, at, end);
};

/** The positions of a request object's values; -1 for a missing value. */
interface Spans {
  idAt: number;
  idEnd: number;
  methodAt: number;
  methodEnd: number;
  paramsAt: number;
  paramsEnd: number;
  versionAt: number;
  versionEnd: number;
}

const isString = (body: Buffer, at: number): boolean => at >= 0 && body[at] === QUOTE;
const isNull = (body: Buffer, at: number): boolean => body[at] === LETTER_N;

/**
 * Whether a value is a string, a number or null (JSON-RPC 2.0, section 4).
 * In valid JSON, its first byte shows the type.
 */
const isId = (body: Buffer, at: number): boolean => {
  const byte = body[at] ?? 0;
  return byte === QUOTE || byte === LETTER_N || byte === 0x2d || (byte >= 0x30 && byte <= 0x39);
};

const isVersion2 = (body: Buffer, { versionAt: at, versionEnd: end }: Spans): boolean =>
  isString(body, at) && ((end - at === 5 && startsWith(body, at + 1, "2.0")) || textOf(body, at, end) === "2.0");

const toItem = (body: Buffer, spans: Spans, budget: MemberBudget | undefined): Item => {
  const { idAt, idEnd, methodAt, methodEnd, paramsAt, paramsEnd } = spans;
  if (idAt >= 0 && !isId(body, idAt)) {
    return { id: NULL_ID, error: invalidRequest("id must be a string, a number or null") };
  }
  const id = idAt < 0 ? undefined : body.subarray(idAt, idEnd);
  if (!isVersion2(body, spans)) {
    return { id: id ?? NULL_ID, error: invalidRequest('jsonrpc must be "2.0"') };
  }
  if (!isString(body, methodAt)) {
    return { id: id ?? NULL_ID, error: invalidRequest("method must be a string") };
  }
  const method = textOf(body, methodAt, methodEnd);
  // geth and reth accept `null` instead of an empty list.
  if (paramsAt < 0 || isNull(body, paramsAt)) {
    return { id, call: new LazyCall(method, NO_PARAMS, 0, NO_PARAMS.length) };
  }
  if (body[paramsAt] === OPEN_BRACKET) {
    return {
      id,
      call:
        budget === undefined
          ? new LazyCall(method, body, paramsAt, paramsEnd)
          : new LimitedCall(budget, method, body, paramsAt, paramsEnd),
    };
  }
  if (body[paramsAt] === OPEN_BRACE) {
    return { id, error: invalidParams("params must be an array: named parameters are not supported") };
  }
  return { id: id ?? NULL_ID, error: invalidRequest("params must be an array") };
};

/** Adds the request at `start` to `requests`. The last of duplicate keys wins. Unknown keys are ignored. */
const scanItem = (body: Buffer, start: number, depth: number, { items, budget }: Requests): number => {
  if (body[start] !== OPEN_BRACE) {
    items.push({ id: NULL_ID, error: invalidRequest("not an object") });
    return skipValue(body, start, depth);
  }
  const spans: Spans = {
    idAt: -1,
    idEnd: -1,
    methodAt: -1,
    methodEnd: -1,
    paramsAt: -1,
    paramsEnd: -1,
    versionAt: -1,
    versionEnd: -1,
  };
  const end = skipObject(body, start, depth, (keyAt, keyEnd, valueAt, valueEnd) => {
    switch (keyOf(body, keyAt, keyEnd)) {
      case "id":
        spans.idAt = valueAt;
        spans.idEnd = valueEnd;
        break;
      case "method":
        spans.methodAt = valueAt;
        spans.methodEnd = valueEnd;
        break;
      case "params":
        spans.paramsAt = valueAt;
        spans.paramsEnd = valueEnd;
        break;
      case "jsonrpc":
        spans.versionAt = valueAt;
        spans.versionEnd = valueEnd;
    }
  });
  if (end > 0) {
    items.push(toItem(body, spans, budget));
  }
  return end;
};

/** Parses a request body in one pass over its bytes. Throws RpcError if no call in it can get its own response. */
export const parseEnvelope = (bytes: Uint8Array, maxBatch: number): Envelope => {
  const body = Buffer.isBuffer(bytes) ? bytes : asBuffer(bytes);
  if (!isUtf8(body)) {
    throw new RpcError(CODES.PARSE, "Parse error: invalid UTF-8");
  }
  const large = body.length > UNLIMITED_BYTES;
  if (large && hasManyValues(body)) {
    throw invalidRequest(`more than ${MAX_VALUES} values`);
  }
  const items: Item[] = [];
  const requests: Requests = { items, budget: large ? new MemberBudget() : undefined };
  let count = 0;
  const start = skipSpace(body, 0);
  const batch = body[start] === OPEN_BRACKET;
  const end = batch
    ? skipArray(body, start, 1, (_, at, depth) => {
        count++;
        // A negative position ends the scan.
        return count > maxBatch ? TOO_MANY : scanItem(body, at, depth, requests);
      })
    : scanItem(body, start, 1, requests);
  if (count > maxBatch) {
    throw invalidRequest(`batch of more than ${maxBatch} calls`, 400);
  }
  if (end === TOO_DEEP) {
    throw invalidRequest(`more than ${MAX_DEPTH} levels`);
  }
  if (end < 0 || skipSpace(body, end) !== body.length) {
    throw new RpcError(CODES.PARSE, "Parse error: invalid JSON");
  }
  if (batch && count === 0) {
    throw invalidRequest("empty batch");
  }
  return { batch, items };
};
