import { isClientFault, NodeError, type NodeErrorKind, UnverifiedError } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { BackOff, type BackOffNumbers, type Confirmation, type Failure } from "./backOff.ts";
import { factsOf, isFault, reasonOf } from "./errorKind.ts";
import type { IdentityGate } from "./identityGate.ts";
import type { NodeConfig, NodeLabels, TransportOptions } from "./nodeConfig.ts";

/** The order in which nodes are tried. `spare`: it answers, and others are preferred. `no`: it is not tried. */
export type Use = "yes" | "spare" | "lastResort" | "no";

/** The outcome of a call of forebay's own: an answer, an error, or the call was not sent, as while the node pauses. */
export type OwnCallOutcome = "answered" | "notSent" | NodeError;

export interface NodeStateOptions {
  readonly breaker: TransportOptions["breaker"] | undefined;
  readonly budget: NodeConfig["budget"];
  readonly labels: NodeLabels;
  /** Host and port, for log lines. */
  readonly host: string;
  readonly identity: Pick<IdentityGate, "isIdentified" | "isOpen" | "fault" | "retryInMs">;
  /** Asks the node for a value, whatever its state. */
  readonly sendOwnCall: () => Promise<OwnCallOutcome>;
  /** Whether another node is available. */
  readonly hasOther: () => boolean;
  readonly nowMs?: () => number;
}

/** A read that ended. */
export interface EndedRead {
  readonly isAnswer: boolean;
  readonly isTrial: boolean;
  readonly startMs: number;
}

/** The defaults of `upstream.breaker`. */
export const BREAKER = { failures: 5, openMs: 5_000 };

/** The numbers of the other causes. */
const BACK_OFFS = {
  refused: { failures: 3, openMs: 10_000, maxOpenMs: 300_000 },
  limited: { failures: 1, openMs: 1_000, maxOpenMs: 10_000 },
  wrong: { failures: 1, openMs: 30_000, maxOpenMs: 300_000 },
  method: { failures: 3, openMs: 10_000, maxOpenMs: 300_000 },
} as const satisfies Record<string, BackOffNumbers>;

/** While no other node is available, a node that rejects requests gets one read in this time. */
const LAST_RESORT_MS = 1_000;
/** Calls wait for a rate limit for this time at most. An origin whose polls wait for longer would lose its vote. */
const PAUSE_MS = 2_000;
/** The operator must know of a rate limit of this length. */
const LONG_LIMIT_MS = 8_000;

/** The errors of a node that rejects its user, whatever the call. */
const REFUSALS: ReadonlySet<NodeErrorKind> = new Set(["billing", "unauthorized", "rateLimited"]);

/** Whether the node rejects its user, whatever the call. */
export const isRefusal = ({ kind }: NodeError): boolean => REFUSALS.has(kind);

/** A refusal that names a method is one of this method: the node may answer others. */
const NAMES_METHOD = /\b(?:methods?|modules?|namespaces?)\b|\b(?:eth|debug|trace|net|txpool|erigon|ots)_[a-z]/i;

/** `isSame`: whether the error is a failure of the kind that is to be confirmed. */
const confirmationOf = (outcome: OwnCallOutcome, isSame: (error: NodeError) => boolean): Confirmation => {
  if (outcome === "notSent") {
    return "notAsked";
  }
  return outcome !== "answered" && isSame(outcome) ? "confirmed" : "contradicted";
};

/**
 * The one state of a node: whether it is asked now, why not, and until when. The first row that applies is the state.
 *
 * | event | use | end |
 * |---|---|---|
 * | the operator cordons the node | `no` | it is uncordoned, or the configuration is reloaded |
 * | no response yet, or another chain's | `no` | a check of its chain after 1 s, doubling to 10 s |
 * | no byte for a second, and no answer to a probe (HangWatch) | `lastResort` | any byte; it is probed every 5 s |
 * | five HTTP requests in a row fail, and then a call of forebay's own | `lastResort` | each 5 s a read or a poll of its head is the trial |
 * | three reads in a row are refused (credentials, plan), and then a call of forebay's own | `lastResort` | a trial after 10 s, doubling to 5 min, or Retry-After; or any read that it answers |
 * | a rate limit, or Retry-After | `lastResort` | a trial after 1 s, doubling to 10 s, or Retry-After. Its calls wait for it, 2 s at most, or Retry-After |
 * | a wrong response | `spare` | a trial after 30 s, doubling to 5 min |
 * | its units of the day are spent | `spare` | the next day |
 * | it closed a connection | `spare` | the next request first checks its chain |
 * | three errors in a row of one method, which other nodes answer or which the node refuses | this method: after other nodes | a trial after 10 s, doubling to 5 min |
 *
 * A trial is one read. It is claimed when the read selects the node, and the node is in use again if it answers. Until a trial is
 * claimed, the node counts as in use, and comes first. A poll of the head shows nothing about refusals and wrong responses.
 * The state takes no vote for the head from a node, except that of a node whose chain is another one or unknown.
 */
export class NodeState {
  readonly #options: NodeStateOptions;
  readonly #labels: NodeLabels;
  readonly #telemetry: Telemetry;
  readonly #nowMs: () => number;
  readonly #failed: BackOff;
  readonly #refused: BackOff;
  readonly #limited: BackOff;
  readonly #wrong: BackOff;
  /** The methods that failed since their last answer. Most nodes have none. */
  readonly #methods = new Map<string, BackOff>();
  readonly #counted = new WeakSet<UnverifiedError>();
  #lastFault: NodeError | undefined;
  #lastRefusal: NodeError | undefined;
  #lastTryMs = Number.NEGATIVE_INFINITY;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #isLongLimit = false;
  #isHung = false;
  #isCordoned = false;

  constructor(options: NodeStateOptions, telemetry: Telemetry) {
    const { labels, sendOwnCall, breaker = BREAKER, nowMs = () => performance.now() } = options;
    this.#options = options;
    this.#labels = labels;
    this.#telemetry = telemetry;
    this.#nowMs = nowMs;
    this.#failed = new BackOff({
      ...{ ...breaker, nowMs },
      onChange: (isOut) => this.#onFailed(isOut),
      confirm: async () => confirmationOf(await sendOwnCall(), isFault),
    });
    this.#refused = new BackOff({
      ...{ ...BACK_OFFS.refused, nowMs },
      onChange: (isOut) => this.#onRefused(isOut, this.#lastRefusal),
      // An error without a reply is no refusal: the node does not respond.
      confirm: async () =>
        confirmationOf(await sendOwnCall(), (error) => error.reply !== undefined && isRefusal(error)),
    });
    this.#limited = new BackOff({
      ...{ ...BACK_OFFS.limited, nowMs },
      onChange: (isOut) => !isOut && this.#onLimitEnd(),
    });
    this.#wrong = new BackOff({ ...BACK_OFFS.wrong, nowMs, onChange: (isOut) => !isOut && this.#onWrongEnd() });
    telemetry.metrics.upstreamBreaker.set(labels, 0);
    telemetry.metrics.upstreamRejecting.set(labels, 0);
  }

  get use(): Use {
    const { identity } = this.#options;
    if (this.#isCordoned || !identity.isIdentified) {
      return "no";
    }
    if (this.#isHung || !this.#failed.available || !this.#refused.available || !this.#limited.available) {
      return "lastResort";
    }
    return !this.#wrong.available || this.isSpent || !identity.isOpen ? "spare" : "yes";
  }

  /** Why the node is not in use, or was until its next trial. It has no words of the node. Undefined for a node in use. */
  get because(): string | undefined {
    return this.#cause()[0];
  }

  /** The milliseconds until the next trial; undefined if the state ends by an event. */
  get untilMs(): number | undefined {
    return this.#cause()[1]?.retryInMs;
  }

  /** The next read decides whether the node is used again. */
  get needsTrial(): boolean {
    return (
      (this.#failed.isOpen || this.#refused.isOpen || this.#limited.isOpen || this.#wrong.isOpen) && this.use === "yes"
    );
  }

  /** The operator has taken the node out of use. Only its heads are followed, and its chain is checked. */
  get isCordoned(): boolean {
    return this.#isCordoned;
  }

  /** Its units of the day are spent. */
  get isSpent(): boolean {
    return this.#options.budget?.isSpent === true;
  }

  get isHung(): boolean {
    return this.#isHung;
  }

  /** The time for which calls to the node wait, because it limits the rate: 2 s at most, or as long as the node names. */
  get pauseMs(): number {
    return Math.max(0, Math.min(this.#limited.retryInMs, this.#pausedUntilMs - this.#nowMs()));
  }

  /** Whether the node is to be asked for this method: it has not refused it lately. */
  accepts(method: string): boolean {
    return this.#methods.size === 0 || this.#methods.get(method)?.available !== false;
  }

  /** A read selects the node, and claims the trial. Returns whether it is the trial, or the error of a read that must not be sent. */
  ask(method: string): boolean | NodeError {
    if (!this.#refused.available) {
      // The other node has failed for this read. Otherwise the node may have recovered.
      if (!this.#options.hasOther() && this.#nowMs() - this.#lastTryMs < LAST_RESORT_MS) {
        return this.#refusedError();
      }
      this.#lastTryMs = this.#nowMs();
    }
    let isTrial = this.#methods.size > 0 && this.#methods.get(method)?.begin() === true;
    isTrial = this.#failed.begin() || isTrial;
    isTrial = this.#refused.begin() || isTrial;
    isTrial = this.#limited.begin() || isTrial;
    return this.#wrong.begin() || isTrial;
  }

  /** A read ended. `isAnswer`: with a response, or an error that the client caused. */
  answered(method: string, { isAnswer, isTrial, startMs }: EndedRead): void {
    const ofMethod = this.#methods.size > 0 ? this.#methods.get(method) : undefined;
    if (isAnswer) {
      this.#refused.succeeded(startMs);
      this.#wrong.succeeded();
      ofMethod?.succeeded();
      if (ofMethod?.isOpen === false) {
        this.#methods.delete(method);
      }
    }
    if (isTrial) {
      this.#failed.release();
      this.#refused.release();
      this.#limited.release();
      this.#wrong.release();
      ofMethod?.release();
    }
  }

  /** An HTTP request begins. A poll can be the trial of a node that failed. */
  begin(): void {
    this.#failed.begin();
    this.#limited.begin();
  }

  /** An HTTP request that began then ended. All its calls count as one. `abandoned`: all callers have disconnected. */
  ended(end: "response" | "fault" | "abandoned", startMs: number, isHeadRead: boolean): void {
    if (end !== "response") {
      this.#limited.release();
    }
    if (end === "abandoned") {
      this.#failed.release();
    } else if (end === "fault") {
      this.#failed.failed();
    } else {
      // A node may fail for all reads, and still answer the polls of its head.
      this.#failed.succeeded(isHeadRead ? undefined : startMs);
    }
  }

  /** A call that began then ended: with a result, or with this error. */
  called(error: NodeError | undefined, method: string, startMs: number): void {
    if (error === undefined || isClientFault(error.kind)) {
      this.#limited.succeeded(startMs);
      return;
    }
    if (isFault(error)) {
      this.#lastFault = error;
    }
    this.wrong(error, method);
    if (error.kind === "rateLimited") {
      this.#limit({ startMs, forMs: retryMsOf(error) }, error);
    } else if (isRefusal(error) && NAMES_METHOD.test(error.message)) {
      this.methodFailed(error, method);
    } else if (isRefusal(error)) {
      this.#lastRefusal = error;
      this.#lastTryMs = this.#nowMs();
      this.#refused.failed({ startMs, forMs: retryMsOf(error) });
    }
  }

  /** The node asks for a pause. */
  pause(forMs: number): void {
    this.#limit({ forMs }, undefined);
  }

  /** An error of this method alone: the node refuses it, or has an error where another node answered the same read. */
  methodFailed(error: NodeError, method: string): void {
    let backOff = this.#methods.get(method);
    if (backOff === undefined) {
      const fields = { ...this.#labels, host: this.#options.host, method };
      const { log } = this.#telemetry;
      const onChange = (isOut: boolean): void =>
        isOut
          ? log.warn({ ...fields, ...factsOf(error) }, "node is not used for a method: it rejects it")
          : log.info(fields, "node is used for a method again");
      backOff = new BackOff({ ...BACK_OFFS.method, nowMs: this.#nowMs, onChange });
      this.#methods.set(method, backOff);
    }
    backOff.failed();
  }

  /** A response is known to be wrong. Other errors have no effect. Returns false if this error was counted before. */
  wrong(error: unknown, method?: string): boolean {
    if (!(error instanceof UnverifiedError) || !error.isCertain) {
      return true;
    }
    if (this.#counted.has(error)) {
      return false;
    }
    this.#counted.add(error);
    const { check } = error;
    const { log, metrics } = this.#telemetry;
    metrics.verifyFailures.inc({ ...this.#labels, check });
    if (!this.#wrong.isOpen) {
      log.warn({ ...this.#labels, check, method }, "node is suspended: its response was wrong");
      metrics.upstreamSuspended.set(this.#labels, 1);
    }
    this.#wrong.failed();
    return true;
  }

  /** The node has begun to hang, or has responded again. */
  hung(isHung: boolean): void {
    this.#isHung = isHung;
    const { log, metrics } = this.#telemetry;
    metrics.upstreamHung.set(this.#labels, isHung ? 1 : 0);
    log.warn(
      this.#labels,
      isHung ? "node hangs: it responds neither to requests nor to a probe" : "node responds again",
    );
  }

  cordon(isCordoned: boolean): void {
    if (this.#isCordoned === isCordoned) {
      return;
    }
    this.#isCordoned = isCordoned;
    const { log, metrics } = this.#telemetry;
    metrics.upstreamCordoned.set(this.#labels, isCordoned ? 1 : 0);
    log.warn(this.#fields(), isCordoned ? "node is not used: it is cordoned" : "node is used again: it is uncordoned");
  }

  /** Returns why the node is not in use, and what decides about the time. */
  #cause(): readonly [because?: string, backOff?: Pick<BackOff, "retryInMs">] {
    const { identity } = this.#options;
    if (this.#isCordoned) {
      return ["it is cordoned"];
    }
    if (!identity.isIdentified) {
      return [identity.fault?.text ?? "no response yet", identity];
    }
    if (this.#isHung) {
      return ["it responds neither to requests nor to a probe"];
    }
    if (this.#failed.isOpen) {
      const reason = this.#lastFault === undefined ? "" : `: ${reasonOf(this.#lastFault)}`;
      return [`it failed too often${reason}`, this.#failed];
    }
    if (this.#refused.isOpen) {
      return [this.#lastRefusal === undefined ? "it rejects requests" : reasonOf(this.#lastRefusal), this.#refused];
    }
    if (this.#limited.isOpen) {
      return ["it limits the rate", this.#limited];
    }
    if (this.#wrong.isOpen) {
      return ["its response was wrong", this.#wrong];
    }
    if (this.isSpent) {
      return ["its units of the day are spent"];
    }
    return identity.isOpen ? [] : ["the next request checks its chain"];
  }

  #limit(failure: Failure, error: NodeError | undefined): void {
    if (this.#limited.failed(failure)) {
      const { forMs = 0 } = failure;
      this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#nowMs() + Math.max(forMs, PAUSE_MS));
    }
    if (!this.#isLongLimit && this.#limited.retryInMs >= LONG_LIMIT_MS) {
      this.#isLongLimit = true;
      this.#onRefused(true, error);
    }
  }

  #onLimitEnd(): void {
    if (this.#isLongLimit) {
      this.#isLongLimit = false;
      this.#onRefused(false, undefined);
    }
  }

  #onRefused(isOut: boolean, error: NodeError | undefined): void {
    const { log, metrics } = this.#telemetry;
    const isRejecting = this.#refused.isOpen || this.#isLongLimit;
    metrics.upstreamRejecting.set(this.#labels, isRejecting ? 1 : 0);
    if (isOut) {
      log.warn({ ...this.#fields(), ...(error && factsOf(error)) }, "node is not used: it rejects requests");
    } else if (!isRejecting) {
      log.info(this.#fields(), "node is used again: it accepts requests");
    }
  }

  #onFailed(isOut: boolean): void {
    const { log, metrics } = this.#telemetry;
    metrics.upstreamBreaker.set(this.#labels, isOut ? 1 : 0);
    if (isOut) {
      const facts = this.#lastFault && factsOf(this.#lastFault);
      log.warn({ ...this.#fields(), ...facts }, "node is not used: it failed too often");
    } else {
      log.warn(this.#fields(), "node is used again");
    }
  }

  #onWrongEnd(): void {
    const { log, metrics } = this.#telemetry;
    metrics.upstreamSuspended.set(this.#labels, 0);
    log.info(this.#labels, "node is used again after its wrong response");
  }

  #refusedError(): NodeError {
    const { kind = "unauthorized" } = this.#lastRefusal ?? {};
    const because = this.#lastRefusal === undefined ? "requests are rejected" : reasonOf(this.#lastRefusal);
    return new NodeError(kind, this.#labels.node, `no node can answer now: ${because}`, {
      status: 503,
      retryAfterSeconds: BACK_OFFS.refused.openMs / 1000,
    });
  }

  #fields() {
    return { ...this.#labels, host: this.#options.host };
  }
}

const retryMsOf = ({ reply }: NodeError): number | undefined =>
  reply?.retryAfterSeconds === undefined ? undefined : reply.retryAfterSeconds * 1000;
