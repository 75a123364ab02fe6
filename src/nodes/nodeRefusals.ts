import { NodeError, type NodeErrorKind } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { factsOf, reasonOf } from "./errorKind.ts";
import type { NodeLabels } from "./nodeConfig.ts";
import { Breaker, type Confirmation, confirmationOf, type FailingNode } from "./nodeFailures.ts";

export interface NodeRefusalsOptions extends FailingNode {
  /** Whether all nodes of the chain reject requests. */
  readonly isEachOut: () => boolean;
  /** Whether another node can be used. It has failed for a read that this node is asked for while it is out. Default: no. */
  readonly hasOther?: (() => boolean) | undefined;
  readonly nowMs?: () => number;
}

/** Refusals in a row after which a node, or a method of it, gets no requests. */
const MAX_REFUSALS = 3;
const FIRST_OUT_MS = 10_000;
const MAX_OUT_MS = 300_000;
/** The last usable node is tried at most once in this time. */
const LAST_NODE_MS = 10_000;
/** While no other node can be used, a node that is out is not tried again for this time after it has rejected a call. */
const LAST_RESORT_MS = 1_000;
/** A rate limit counts once in this time, which is the pause after one: the calls in flight at a limit are one refusal. */
const RATE_LIMIT_MS = 1_000;

/** The errors of a node that rejects its user, whatever the call. */
const REFUSALS: ReadonlySet<NodeErrorKind> = new Set(["billing", "unauthorized", "rateLimited"]);

/** Whether the node rejects its user, whatever the call. */
export const isRefusal = ({ kind }: NodeError): boolean => REFUSALS.has(kind);

/** A refusal that names a method is one of this method: the node may answer others. */
const NAMES_METHOD = /\b(?:methods?|modules?|namespaces?)\b|\b(?:eth|debug|trace|net|txpool|erigon|ots)_[a-z]/i;

/**
 * Decides whether a node that rejects requests is out. After three refusals in a row a call of forebay's own decides. If it is
 * refused too, the node is tried again after the time that it named, or after 10 s, doubling up to five minutes. A refusal of one
 * method excludes this method only.
 */
export class NodeRefusals {
  readonly #options: NodeRefusalsOptions;
  readonly #labels: NodeLabels;
  readonly #telemetry: Telemetry;
  readonly #nowMs: () => number;
  readonly #breaker: Breaker;
  /** The methods that were refused since their last response. Most nodes have none. */
  readonly #methods = new Map<string, Breaker>();
  #last: NodeError | undefined;
  #hasFailed = false;
  #isOut = false;
  /** The items of a batch that is refused are one refusal. */
  #isCountedInTurn = false;
  #rateLimitedMs = Number.NEGATIVE_INFINITY;
  #triedMs = Number.NEGATIVE_INFINITY;
  #refusedMs = Number.NEGATIVE_INFINITY;
  /** The last usable node was asked although it is out. */
  #isLastResort = false;

  constructor(options: NodeRefusalsOptions, telemetry: Telemetry) {
    this.#options = options;
    this.#labels = options.labels;
    this.#telemetry = telemetry;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#breaker = this.#createBreaker(
      (isOut) => this.#onChange(isOut),
      // An error without a reply is no refusal: the node does not respond.
      async () => confirmationOf(await options.sendOwnCall(), (error) => error.reply !== undefined && isRefusal(error)),
    );
    telemetry.metrics.upstreamRejecting.set(this.#labels, 0);
  }

  /** The node rejected the last reads, and is not to be tried yet. */
  get isOut(): boolean {
    return this.#isOut && !this.#breaker.available;
  }

  /** The node was out, and its next read decides whether it is used again. */
  get needsTrial(): boolean {
    return this.#isOut && this.#breaker.available;
  }

  /** Why the node is out, or was until its next read; undefined for a node in use. */
  get reason(): string | undefined {
    return this.#isOut && this.#last !== undefined ? reasonOf(this.#last) : undefined;
  }

  /** Whether the node is to be asked for this method. */
  accepts(method: string): boolean {
    return this.#methods.size === 0 || this.#methods.get(method)?.available !== false;
  }

  /** Records that a read is sent. Returns the error of a read that must not be sent. */
  begin(method: string): NodeError | undefined {
    if (this.#isOut) {
      if (!this.#mayTry()) {
        return this.#refusedError();
      }
      this.#triedMs = this.#nowMs();
      this.#isLastResort = !this.#breaker.available;
      this.#breaker.begin();
    }
    if (this.#methods.size > 0) {
      this.#methods.get(method)?.begin();
    }
    return undefined;
  }

  /** Records the response to a read. */
  recordResponse(method: string): void {
    if (this.#hasFailed) {
      if (this.#isLastResort) {
        this.#breaker.reset();
      } else {
        this.#breaker.succeeded();
      }
      this.#isLastResort = false;
      this.#hasFailed = this.#isOut;
    }
    if (this.#methods.size > 0) {
      const breaker = this.#methods.get(method);
      breaker?.succeeded();
      if (breaker?.available === true) {
        this.#methods.delete(method);
      }
    }
  }

  /** Records that a read ended with an error that does not show whether the node accepts reads. */
  release(method: string): void {
    this.#breaker.release();
    this.#methods.get(method)?.release();
  }

  /** Records the error of a call to the node. An error that is no refusal has no effect. */
  recordError(error: NodeError, method: string | undefined): void {
    if (!isRefusal(error)) {
      return;
    }
    if (method !== undefined && error.kind !== "rateLimited" && NAMES_METHOD.test(error.message)) {
      this.recordMethodError(error, method);
    } else if (this.#isNewRefusal(error)) {
      this.#last = error;
      this.#refusedMs = this.#nowMs();
      this.#hasFailed = true;
      const { retryAfterSeconds } = error.reply ?? {};
      const retryMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
      this.#breaker.failed(retryMs);
      // The operator must know of a pause of this length.
      if (retryMs !== undefined && retryMs >= FIRST_OUT_MS) {
        this.#breaker.open(retryMs);
      }
    }
  }

  /** Records an error of this method alone: the node refuses it, or has an error where another node answered the same read. */
  recordMethodError(error: NodeError, method: string): void {
    let breaker = this.#methods.get(method);
    if (breaker === undefined) {
      const fields = { ...this.#labels, host: this.#options.host, method };
      breaker = this.#createBreaker((isOut) => {
        if (isOut) {
          this.#telemetry.log.warn({ ...fields, ...factsOf(error) }, "node is not used for a method: it rejects it");
        } else {
          this.#telemetry.log.info(fields, "node is used for a method again");
        }
      });
      this.#methods.set(method, breaker);
    }
    breaker.failed();
  }

  #isNewRefusal({ kind }: NodeError): boolean {
    const nowMs = this.#nowMs();
    if (this.#isCountedInTurn || (kind === "rateLimited" && nowMs - this.#rateLimitedMs < RATE_LIMIT_MS)) {
      return false;
    }
    if (kind === "rateLimited") {
      this.#rateLimitedMs = nowMs;
    }
    this.#isCountedInTurn = true;
    setImmediate(() => {
      this.#isCountedInTurn = false;
    });
    return true;
  }

  /**
   * A node that is out is selected if every other node has failed for this read. It may have recovered. If all nodes reject
   * requests, one that limits the rate is asked after each of its pauses.
   */
  #mayTry(): boolean {
    if (this.#breaker.available) {
      return true;
    }
    const nowMs = this.#nowMs();
    if (!this.#options.isEachOut()) {
      return this.#options.hasOther?.() === true || nowMs - this.#refusedMs >= LAST_RESORT_MS;
    }
    return this.#last?.kind === "rateLimited" || nowMs - this.#triedMs >= LAST_NODE_MS;
  }

  #refusedError(): NodeError {
    const { kind = "unauthorized" } = this.#last ?? {};
    const reason = this.#last && reasonOf(this.#last);
    return new NodeError(kind, this.#labels.node, `no node can answer now: ${reason ?? "requests are rejected"}`, {
      status: 503,
      retryAfterSeconds: LAST_NODE_MS / 1000,
    });
  }

  #createBreaker(onChange: (isOut: boolean) => void, confirm?: () => Promise<Confirmation>): Breaker {
    const { nowMs } = this.#options;
    const times = { openMs: FIRST_OUT_MS, maxOpenMs: MAX_OUT_MS };
    return new Breaker({ failures: MAX_REFUSALS, ...times, ...(nowMs && { nowMs }), onChange, confirm });
  }

  #onChange(isOut: boolean): void {
    const { log, metrics } = this.#telemetry;
    this.#isOut = isOut;
    metrics.upstreamRejecting.set(this.#labels, isOut ? 1 : 0);
    const fields = { ...this.#labels, host: this.#options.host };
    if (isOut && this.#last !== undefined) {
      log.warn({ ...fields, ...factsOf(this.#last) }, "node is not used: it rejects requests");
    } else if (!isOut) {
      log.info(fields, "node is used again: it accepts requests");
    }
  }
}
