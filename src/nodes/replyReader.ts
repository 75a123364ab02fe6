import { NodeError, type NodeErrorKind, type NodeReply, UnverifiedError } from "../core/node.ts";
import { asText } from "../json/asText.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { isJson } from "../verification/checkBody.ts";
import { errorKind, plainTextKind } from "./errorKind.ts";
import type { NodeResponse } from "./nodeResponse.ts";
import type { NodeUrl } from "./nodeUrl.ts";
import type { HttpReply } from "./postJson.ts";

export interface ReplyReaderOptions {
  /** Name of the node, for errors. */
  readonly name: string;
  readonly endpoint: Pick<NodeUrl, "redact">;
  /** Whether the id, the status and the error object of a reply are checked. */
  readonly verifies: boolean;
}

const MAX_QUOTED_BYTES = 200;
/** Limit of Retry-After. A date from a wrong clock must not disable a node for days. */
const MAX_RETRY_AFTER_SECONDS = 3600;

/** Parses Retry-After, which is seconds or a date, into seconds. Source: RFC 9110, section 10.2.3. */
export const parseRetryAfter = (header: string | undefined): number | undefined => {
  if (header === undefined) {
    return undefined;
  }
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(0, Math.ceil(seconds)), MAX_RETRY_AFTER_SECONDS) : undefined;
};

const STATUSES: Partial<Record<NodeErrorKind, number>> = {
  timeout: 504,
  rateLimited: 429,
  billing: 503,
  unauthorized: 503,
  unreachable: 503,
  invalidAnswer: 503,
};

interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
  /** Whether it has all members of a JSON-RPC error object. Its text is then forwarded unchanged. */
  readonly isComplete: boolean;
}

/** Parses a node's error object. Returns undefined if the text is not JSON. */
const parseError = (text: string): ErrorObject | undefined => {
  let error: unknown;
  try {
    error = JSON.parse(text);
  } catch {
    return undefined;
  }
  // Some providers return a string instead of the object.
  const { code, message, data } = Object(typeof error === "string" ? { message: error } : error);
  return {
    code: typeof code === "number" ? code : CODES.SERVER,
    message: typeof message === "string" ? message : "error without a message",
    ...(data !== undefined && { data }),
    isComplete: Number.isInteger(code) && typeof message === "string",
  };
};

const STARTS_AS_JSON = /^\s*[[{]/;

/** Whether a response has the id. The error of a whole request may have the id `null` (JSON-RPC 2.0, section 5). */
const hasId = (response: NodeResponse, id: number): boolean =>
  response.id === String(id) || ("error" in response && response.id === "null");

const codeOf = (kind: NodeErrorKind): number =>
  kind === "rateLimited" ? CODES.RATE_LIMITED : kind === "tooLarge" ? CODES.RESPONSE_TOO_LARGE : CODES.INTERNAL;

/** Turns the HTTP replies of one node into results or errors. */
export class ReplyReader {
  readonly #options: ReplyReaderOptions;

  constructor(options: ReplyReaderOptions) {
    this.#options = options;
  }

  /** Returns the result of the call with that id, or the error. `response` is undefined if the reply is not JSON-RPC. */
  read(response: NodeResponse | undefined, http: HttpReply, id: number): Uint8Array | NodeError {
    const { name, verifies } = this.#options;
    if (response === undefined) {
      return this.#invalidReply(http);
    }
    if (verifies && !hasId(response, id)) {
      return new UnverifiedError(name, "id", true);
    }
    if ("error" in response) {
      return this.#nodeError(response.error, http);
    }
    const isGood = http.status >= 200 && http.status < 300;
    return verifies && !isGood ? new UnverifiedError(name, "status", true) : response.result;
  }

  createError(kind: NodeErrorKind, message: string, reply?: NodeReply): NodeError {
    const { name, endpoint } = this.#options;
    const status = STATUSES[kind];
    const seconds = reply?.retryAfterSeconds ?? (status === 503 || status === 429 ? 1 : undefined);
    return new NodeError(kind, name, endpoint.redact(message), {
      code: codeOf(kind),
      ...(status !== undefined && { status }),
      ...(seconds !== undefined && { retryAfterSeconds: seconds }),
      ...(reply && { reply }),
    });
  }

  #nodeError(error: Uint8Array, http: HttpReply): NodeError {
    const { name, endpoint, verifies } = this.#options;
    const text = asText(error);
    const redacted = endpoint.redact(text);
    const parsed = parseError(redacted);
    if (parsed === undefined) {
      return verifies ? new UnverifiedError(name, "json", true) : this.createError("invalidAnswer", "unreadable error");
    }
    const { code, message, data, isComplete: isWhole } = parsed;
    const kind = errorKind(
      code,
      typeof data === "string" && !data.startsWith("0x") ? `${message} ${data}` : message,
      http.status,
    );
    const seconds = parseRetryAfter(http.retryAfter);
    return new NodeError(kind, name, message, {
      code,
      data,
      reply: { status: http.status, text: message, retryAfterSeconds: seconds },
      ...(http.status === 429 && { status: 429, retryAfterSeconds: seconds ?? 1 }),
      ...(isWhole && { text: redacted === text ? error : Buffer.from(redacted) }),
    });
  }

  /** Creates the error of a reply that is not JSON-RPC: an error page, an empty or an incomplete body. */
  #invalidReply({ status, body, retryAfter }: HttpReply): NodeError {
    const { name, endpoint, verifies } = this.#options;
    const text = asText(body.subarray(0, MAX_QUOTED_BYTES));
    if (verifies && status === 200 && STARTS_AS_JSON.test(text)) {
      return new UnverifiedError(name, "json", true);
    }
    const reply = { status, text: endpoint.redact(text), retryAfterSeconds: parseRetryAfter(retryAfter) };
    if (status !== 200) {
      return this.createError(errorKind(undefined, text, status), `HTTP status ${status}`, reply);
    }
    const kind = STARTS_AS_JSON.test(text) ? "invalidAnswer" : plainTextKind(text);
    return this.createError(kind, "the body is not a JSON-RPC response", reply);
  }
}

/** Checks that each result of a batch is JSON. The results of a batch are small, so that each is scanned whole. */
export const checkJson = (name: string, outcome: Uint8Array | NodeError): Uint8Array | NodeError =>
  outcome instanceof NodeError || isJson(outcome) ? outcome : new UnverifiedError(name, "json", true);
