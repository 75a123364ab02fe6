import { NodeError, type NodeErrorKind, UnverifiedError } from "../core/node.ts";
import { asText } from "../json/asText.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { isJson } from "../verification/checkBody.ts";
import { errorKind } from "./errorKind.ts";
import type { NodeResponse } from "./nodeResponse.ts";
import type { NodeUrl } from "./nodeUrl.ts";
import type { HttpReply } from "./postJson.ts";

export interface OutcomesOptions {
  readonly name: string;
  readonly endpoint: Pick<NodeUrl, "redact">;
  /** Whether an answer's id, status and error object are checked. */
  readonly verifies: boolean;
}

/** What a node's HTTP answers mean. */
export interface Outcomes {
  /** The result of the call with that id, or the node's error. */
  of(answer: NodeResponse | undefined, http: HttpReply, id: number): Uint8Array | NodeError;
  noAnswer(kind: NodeErrorKind, message: string, retryAfterSeconds?: number): NodeError;
}

const MAX_TOLD_BYTES = 200;
/** A date from a wrong clock must not take a node away for days. */
const MAX_RETRY_AFTER_SECONDS = 3600;

/** Seconds, or a date (RFC 9110 section 10.2.3). */
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
  /** It has the members of a JSON-RPC error object, and can be passed on as it is. */
  readonly isWhole: boolean;
}

/** Undefined where the text is no JSON. */
const parseError = (text: string): ErrorObject | undefined => {
  let error: unknown;
  try {
    error = JSON.parse(text);
  } catch {
    return undefined;
  }
  // Some providers give a text in place of the object.
  const { code, message, data } = Object(typeof error === "string" ? { message: error } : error);
  return {
    code: typeof code === "number" ? code : CODES.SERVER,
    message: typeof message === "string" ? message : "error without a message",
    ...(data !== undefined && { data }),
    isWhole: Number.isInteger(code) && typeof message === "string",
  };
};

const OBJECT_OR_LIST = /^\s*[[{]/;

export const createOutcomes = ({ name, endpoint, verifies }: OutcomesOptions): Outcomes => {
  const noAnswer: Outcomes["noAnswer"] = (kind, message, retryAfterSeconds) => {
    const status = STATUSES[kind];
    const seconds = retryAfterSeconds ?? (status === 503 || status === 429 ? 1 : undefined);
    const code =
      kind === "rateLimited" ? CODES.RATE_LIMITED : kind === "tooLarge" ? CODES.RESPONSE_TOO_LARGE : CODES.INTERNAL;
    return new NodeError(kind, name, `${name}: ${endpoint.redact(message)}`, {
      code,
      ...(status !== undefined && { status }),
      ...(seconds !== undefined && { retryAfterSeconds: seconds }),
    });
  };

  const nodesOwn = (error: Uint8Array, http: HttpReply): NodeError => {
    const text = asText(error);
    const clean = endpoint.redact(text);
    const parsed = parseError(clean);
    if (parsed === undefined) {
      return verifies ? new UnverifiedError(name, "json", true) : noAnswer("invalidAnswer", "unreadable error");
    }
    const { code, message, data, isWhole } = parsed;
    const kind = errorKind(
      code,
      typeof data === "string" && !data.startsWith("0x") ? `${message} ${data}` : message,
      http.status,
    );
    const seconds = parseRetryAfter(http.retryAfter);
    return new NodeError(kind, name, message, {
      code,
      data,
      ...(http.status === 429 && { status: 429, retryAfterSeconds: seconds ?? 1 }),
      ...(isWhole && { text: clean === text ? error : Buffer.from(clean) }),
    });
  };

  /** The node gave no JSON-RPC response: an error page, an empty body, something cut off. */
  const notJsonRpc = ({ status, body, retryAfter }: HttpReply): NodeError => {
    const text = asText(body.subarray(0, MAX_TOLD_BYTES));
    if (verifies && status === 200 && OBJECT_OR_LIST.test(text)) {
      return new UnverifiedError(name, "json", true);
    }
    return noAnswer(
      errorKind(undefined, status === 200 ? "" : text, status),
      status === 200 ? "the answer is no JSON-RPC response" : `HTTP status ${status}`,
      parseRetryAfter(retryAfter),
    );
  };

  /** An error of the whole request may come without an id (JSON-RPC 2.0, section 5). */
  const isOfId = (answer: NodeResponse, id: number): boolean =>
    answer.id === String(id) || ("error" in answer && answer.id === "null");

  return {
    noAnswer,
    of: (answer, http, id) => {
      if (answer === undefined) {
        return notJsonRpc(http);
      }
      if (verifies && !isOfId(answer, id)) {
        return new UnverifiedError(name, "id", true);
      }
      if ("error" in answer) {
        return nodesOwn(answer.error, http);
      }
      const isGood = http.status >= 200 && http.status < 300;
      return verifies && !isGood ? new UnverifiedError(name, "status", true) : answer.result;
    },
  };
};

/** The results of a batch are small: each is read to its end. */
export const checkJson = (name: string, outcome: Uint8Array | NodeError): Uint8Array | NodeError =>
  outcome instanceof NodeError || isJson(outcome) ? outcome : new UnverifiedError(name, "json", true);
