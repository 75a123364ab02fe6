import type { Context } from "../core/context.ts";
import { NodeError, type NodeErrorKind, UnverifiedError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import { asText } from "../json/jsonBytes.ts";
import type { Awaitable, Call } from "../jsonrpc/call.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { hasSeveralOrigins, type OriginNode, OtherOrigins, type Read } from "./otherOrigins.ts";
import { isSameResult, isSingleValue, needsAgreement } from "./sameResult.ts";

/** What a node returned for a read of the state. */
export interface StatedResult {
  readonly node: string;
  readonly value: unknown;
}

/** Each read of a client can find the same difference again. */
const LOG_INTERVAL_MS = 60_000;
/** Of the parameters of a call, and of a value. */
const MAX_LOGGED_CHARACTERS = 1_000;

/** The reads of state for which two nodes return different results, and no other decides. One of them is logged a minute. */
export class Disagreements {
  readonly #chain: string;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(chain: string, telemetry: Pick<Telemetry, "log" | "metrics">) {
    this.#chain = chain;
    this.#telemetry = telemetry;
  }

  report({ method, params }: Call, statements: readonly StatedResult[]): void {
    const { log, metrics } = this.#telemetry;
    const chain = this.#chain;
    metrics.stateDisagreements.inc({ chain });
    const nowMs = performance.now();
    if (nowMs - this.#loggedMs >= LOG_INTERVAL_MS) {
      this.#loggedMs = nowMs;
      const shown = statements.map(({ node, value }) => ({
        node,
        value: String(value).slice(0, MAX_LOGGED_CHARACTERS),
      }));
      const text = JSON.stringify(params).slice(0, MAX_LOGGED_CHARACTERS);
      log.error({ chain, method, params: text, statements: shown }, "nodes disagree on a state value");
    }
  }
}

export interface AgreedStateOptions {
  readonly nodes: readonly OriginNode[];
  readonly agree: 1 | 2;
  readonly disagreements: Pick<Disagreements, "report">;
}

/** A result that a node returned, or the error of a call that fails. */
interface Statement {
  readonly outcome: RpcResponse | NodeError;
  readonly node: OriginNode;
}

/** The errors that every node would return for the call. */
const FAILURES: ReadonlySet<NodeErrorKind> = new Set(["revert", "rejected", "executionFailed", "invalidParams"]);

/** The error of a read on whose result the origins do not agree. */
export const disagreement = () =>
  unavailable("nodes of two providers return different results for this read of the state, and no other one decides");

const hasBlockHash = (param: unknown): boolean => typeof param === "object" && param !== null && "blockHash" in param;

/** A read at a tag, such as `pending`, depends on the node. A value whose life is over is requested from another origin by the cache. */
const isCompared = ({ method, block, params, avoidedOrigins }: RpcRequest): boolean =>
  needsAgreement(method) && avoidedOrigins === undefined && (block !== undefined || params.some(hasBlockHash));

const isSameError = ({ data: one }: NodeError, { data: other }: NodeError): boolean =>
  one === undefined || other === undefined || JSON.stringify(one).toLowerCase() === JSON.stringify(other).toLowerCase();

const isSame = (method: string, { outcome: one }: Statement, { outcome: other }: Statement): boolean => {
  if (one instanceof NodeError || other instanceof NodeError) {
    return one instanceof NodeError && other instanceof NodeError && isSameError(one, other);
  }
  const { body: first } = one;
  const { body: second } = other;
  return first instanceof Uint8Array && second instanceof Uint8Array && isSameResult(method, first, second);
};

const textOf = (outcome: RpcResponse | NodeError): string =>
  outcome instanceof NodeError ? outcome.message : outcome.body instanceof Uint8Array ? asText(outcome.body) : "";

const resultOf = ({ outcome }: Statement, isConfirmed: boolean): RpcResponse => {
  if (outcome instanceof NodeError) {
    throw outcome;
  }
  return { ...outcome, isConfirmed };
};

/** Reads values of the state and results of calls from two origins. */
class AgreedState implements RpcSource {
  readonly #source: RpcSource;
  readonly #options: AgreedStateOptions;
  readonly #others: OtherOrigins;

  constructor(source: RpcSource, options: AgreedStateOptions) {
    this.#source = source;
    this.#options = options;
    this.#others = new OtherOrigins(source, options.nodes);
  }

  request(request: RpcRequest, context: Context): Awaitable<RpcResponse> {
    return isCompared(request) ? this.#agree({ request, context }) : this.#source.request(request, context);
  }

  async #agree(read: Read): Promise<RpcResponse> {
    const outcome = await this.#readFirst(read);
    const first = this.#statementOf(outcome);
    if (first === undefined) {
      if (outcome instanceof NodeError) {
        throw outcome;
      }
      return { ...outcome, isConfirmed: false };
    }
    const second = this.#statementOf(await this.#others.ask(read, [first.node.origin]));
    if (second === undefined) {
      return resultOf(first, false);
    }
    return isSame(read.request.method, first, second) ? resultOf(first, true) : this.#decide(read, first, second);
  }

  async #readFirst({ request, context }: Read): Promise<RpcResponse | NodeError> {
    try {
      return await this.#source.request(request, context);
    } catch (error) {
      if (error instanceof NodeError) {
        return error;
      }
      throw error;
    }
  }

  /** Decides by the statement of a third origin. Throws if there is none, or if it is another one. */
  async #decide(read: Read, first: Statement, second: Statement): Promise<RpcResponse> {
    const { method, byHash } = read.request;
    const third = this.#statementOf(await this.#others.ask(read, [first.node.origin, second.node.origin]));
    const right = third && [first, second].find((each) => isSame(method, each, third));
    if (right === undefined) {
      const statements = [first, second].map(({ node, outcome }) => ({ node: node.name, value: textOf(outcome) }));
      this.#options.disagreements.report(byHash ?? read.request, statements);
      throw disagreement();
    }
    this.#blame(right === first ? second : first, read.request);
    return resultOf(right, true);
  }

  /** A read by number is not of one block, unless that block cannot change. */
  #blame({ node }: Statement, { method, retention }: RpcRequest): void {
    if (isSingleValue(method) && RETENTION[retention].isCached) {
      node.recordWrongAnswer(new UnverifiedError(node.name, "state", true));
    }
  }

  /** Returns undefined for what is no statement: a stream, a response of another branch, or an error of the node itself. */
  #statementOf(outcome: RpcResponse | NodeError | undefined): Statement | undefined {
    const node = this.#others.nodeOf(outcome?.node);
    if (outcome === undefined || node === undefined) {
      return undefined;
    }
    const isStatement =
      outcome instanceof NodeError
        ? FAILURES.has(outcome.kind)
        : outcome.body instanceof Uint8Array && outcome.verified !== false;
    return isStatement ? { outcome, node } : undefined;
  }
}

/**
 * Wraps a source so that values of the state and results of calls at a block need two origins, if `agree` is 2. If two differ, a
 * third origin decides. Without it, the read fails. If no other origin responds in time, the first response is returned.
 */
export const agreedState = (source: RpcSource, options: AgreedStateOptions): RpcSource =>
  options.agree === 2 && hasSeveralOrigins(options.nodes) ? new AgreedState(source, options) : source;
