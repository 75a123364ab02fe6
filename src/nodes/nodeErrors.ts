import { type Check, NodeError, type NodeErrorKind, type NodeReply, UnverifiedError } from "../core/node.ts";
import { asText } from "../json/jsonBytes.ts";
import { CODES, overBudget } from "../jsonrpc/rpcError.ts";
import { errorKind, logsRefusal, plainTextKind } from "./errorKind.ts";
import type { HttpReply, PostError } from "./httpPost.ts";
import type { NodeUrl } from "./nodeConfig.ts";

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

const codeOf = (kind: NodeErrorKind): number =>
  kind === "rateLimited" ? CODES.RATE_LIMITED : kind === "tooLarge" ? CODES.RESPONSE_TOO_LARGE : CODES.INTERNAL;

/** Creates the errors of one node. No text of them has a secret of its endpoint. */
export class NodeErrors {
  readonly #name: string;
  readonly #url: Pick<NodeUrl, "redact">;
  readonly #verifies: boolean;

  /** `verifies`: whether a reply that is not JSON-RPC is a wrong response. */
  constructor(name: string, url: Pick<NodeUrl, "redact">, verifies: boolean) {
    this.#name = name;
    this.#url = url;
    this.#verifies = verifies;
  }

  /** Creates an error without an error object of the node. `reply`: what the node sent instead. */
  create(kind: NodeErrorKind, message: string, reply?: NodeReply): NodeError {
    const status = STATUSES[kind];
    const seconds = reply?.retryAfterSeconds ?? (status === 503 || status === 429 ? 1 : undefined);
    return new NodeError(kind, this.#name, this.#url.redact(message), {
      code: codeOf(kind),
      ...(status !== undefined && { status }),
      ...(seconds !== undefined && { retryAfterSeconds: seconds }),
      ...(reply && { reply }),
    });
  }

  /** Creates the error of a response whose check failed. */
  unverified(check: Check): UnverifiedError {
    return new UnverifiedError(this.#name, check, true);
  }

  /** Creates the error of a response that forebay has no room for. No other node would help. */
  overBudget(): NodeError {
    const { message, status, retryAfterSeconds = 1 } = overBudget();
    return new NodeError("cancelled", this.#name, message, { status, retryAfterSeconds });
  }

  /** Creates the error of a response with this error object. A complete object is forwarded unchanged. `isQuoting`: see `errorKind`. */
  ofErrorObject(error: Uint8Array, http: HttpReply, isQuoting: boolean): NodeError {
    const text = asText(error);
    const redacted = this.#url.redact(text);
    const parsed = parseError(redacted);
    if (parsed === undefined) {
      return this.#verifies ? this.unverified("json") : this.create("invalidAnswer", "unreadable error");
    }
    const { code, message, data, isComplete: isWhole } = parsed;
    const said = typeof data === "string" && !data.startsWith("0x") ? `${message} ${data}` : message;
    const kind = errorKind(code, said, http.status, isQuoting);
    const seconds = parseRetryAfter(http.retryAfter);
    return new NodeError(kind, this.#name, message, {
      code,
      data,
      refusal: logsRefusal(kind, said),
      reply: { status: http.status, text: message, retryAfterSeconds: seconds },
      ...(http.status === 429 && { status: 429, retryAfterSeconds: seconds ?? 1 }),
      ...(isWhole && { text: redacted === text ? error : Buffer.from(redacted) }),
    });
  }

  /** Creates the error of a reply that is not JSON-RPC: an error page, an empty or an incomplete body. */
  ofInvalidReply({ status, body, retryAfter }: HttpReply, isQuoting: boolean): NodeError {
    const text = asText(body.subarray(0, MAX_QUOTED_BYTES));
    if (this.#verifies && status === 200 && STARTS_AS_JSON.test(text)) {
      return this.unverified("json");
    }
    const reply = { status, text: this.#url.redact(text), retryAfterSeconds: parseRetryAfter(retryAfter) };
    if (status !== 200) {
      return this.create(errorKind(undefined, text, status, isQuoting), `HTTP status ${status}`, reply);
    }
    const kind = STARTS_AS_JSON.test(text) ? "invalidAnswer" : plainTextKind(text, isQuoting);
    return this.create(kind, "the body is not a JSON-RPC response", reply);
  }

  /** Creates the error of an HTTP request that got no whole reply. */
  ofPost({ reason, message }: PostError): NodeError {
    if (reason === "overBudget") {
      return this.overBudget();
    }
    const kind = reason === "network" ? "unreachable" : reason === "aborted" ? "cancelled" : reason;
    return this.create(kind, message);
  }
}
