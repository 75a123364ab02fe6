import { type Check, type NodeError, UnverifiedError } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { factsOf, isFault, reasonOf } from "./errorKind.ts";
import type { NodeLabels, TransportOptions } from "./nodeConfig.ts";

/** What a call of forebay's own shows about failures: the same, the opposite, or nothing, because it was not sent. */
export type Confirmation = "confirmed" | "contradicted" | "notAsked";

export interface BreakerOptions {
  /** Consecutive failures that open the breaker. */
  readonly failures: number;
  readonly openMs: number;
  /** Each failed probe doubles the time until the next one, up to this time. Default: `openMs`. */
  readonly maxOpenMs?: number;
  readonly nowMs?: () => number;
  readonly onChange?: (open: boolean) => void;
  /**
   * Sends a call of forebay's own. Unless it fails too, the breaker does not open: the failures may be those of one client's calls.
   * Default: each failure counts.
   */
  readonly confirm?: (() => Promise<Confirmation>) | undefined;
}

/** Opens after consecutive failures. Then one probe decides whether it closes again (half open). */
export class Breaker {
  readonly #maxFailures: number;
  readonly #firstOpenMs: number;
  readonly #maxOpenMs: number;
  readonly #nowMs: () => number;
  readonly #onChange: ((open: boolean) => void) | undefined;
  readonly #confirm: (() => Promise<Confirmation>) | undefined;
  #isConfirming = false;
  #failures = 0;
  #openMs: number;
  #openUntilMs: number | undefined;
  #isProbing = false;

  constructor({
    failures,
    openMs,
    maxOpenMs = openMs,
    nowMs = () => performance.now(),
    onChange,
    confirm,
  }: BreakerOptions) {
    this.#maxFailures = failures;
    this.#firstOpenMs = openMs;
    this.#openMs = openMs;
    this.#maxOpenMs = maxOpenMs;
    this.#nowMs = nowMs;
    this.#onChange = onChange;
    this.#confirm = confirm;
  }

  /** True if the breaker is closed, or half open without a probe in flight. */
  get available(): boolean {
    return this.#openUntilMs === undefined || (this.#isHalfOpen() && !this.#isProbing && !this.#isConfirming);
  }

  /** The time until the next probe; 0 if the breaker is closed. */
  get retryInMs(): number {
    return Math.max(0, (this.#openUntilMs ?? 0) - this.#nowMs());
  }

  /** The breaker is half open: the next request decides whether it closes. */
  get needsProbe(): boolean {
    return this.#isHalfOpen();
  }

  /** Records that a request is sent. If the breaker is half open, the request is the probe. */
  begin(): void {
    this.#isProbing = this.#isHalfOpen();
  }

  succeeded(): void {
    this.#isProbing = false;
    this.#failures = 0;
    // A request that was in flight when the breaker opened does not close it.
    if (this.#isHalfOpen()) {
      this.reset();
    }
  }

  /** Closes the breaker. */
  reset(): void {
    this.#isProbing = false;
    this.#failures = 0;
    this.#openMs = this.#firstOpenMs;
    if (this.#openUntilMs !== undefined) {
      this.#openUntilMs = undefined;
      this.#onChange?.(false);
    }
  }

  /** `openForMs`: the time until the next probe. Default: that of the options. */
  failed(openForMs?: number): void {
    this.#failures += 1;
    this.#isProbing = false;
    const isOpen = this.#openUntilMs !== undefined;
    if (isOpen ? !this.#isHalfOpen() : this.#failures < this.#maxFailures) {
      return;
    }
    if (this.#confirm === undefined) {
      this.#openFor(openForMs);
    } else if (!this.#isConfirming) {
      void this.#openIfConfirmed(this.#confirm, openForMs);
    }
  }

  /** Without an answer the breaker stays as it is. The next failure asks again. */
  async #openIfConfirmed(confirm: () => Promise<Confirmation>, openForMs: number | undefined): Promise<void> {
    this.#isConfirming = true;
    const confirmation = await confirm();
    this.#isConfirming = false;
    if (confirmation === "confirmed") {
      this.#openFor(openForMs);
    } else if (confirmation === "contradicted") {
      this.reset();
    }
  }

  /** Opens it, or opens it again after a probe that failed. */
  #openFor(openForMs: number | undefined): void {
    if (this.#openUntilMs === undefined) {
      this.open(openForMs ?? this.#openMs);
    } else {
      this.#openMs = Math.min(this.#openMs * 2, this.#maxOpenMs);
      this.#openUntilMs = this.#nowMs() + (openForMs ?? this.#openMs);
    }
  }

  /** Opens the breaker for this time at least. */
  open(forMs: number): void {
    const wasOpen = this.#openUntilMs !== undefined;
    this.#openUntilMs = Math.max(this.#openUntilMs ?? 0, this.#nowMs() + forMs);
    if (!wasOpen) {
      this.#onChange?.(true);
    }
  }

  /** Records that a request ended without a result that shows the node's health: its client disconnected. */
  release(): void {
    this.#isProbing = false;
  }

  #isHalfOpen(): boolean {
    return this.#openUntilMs !== undefined && this.#nowMs() >= this.#openUntilMs;
  }
}

const DEFAULT_BREAKER = { failures: 5, openMs: 5_000 };

/** The node, as its failures concern it. */
export interface FailingNode {
  readonly labels: NodeLabels;
  /** Host and port, for log lines. */
  readonly host: string;
  readonly sendOwnCall: () => Promise<OwnCallOutcome>;
}

/** The outcome of a call of forebay's own: an answer, an error, or the call was not sent, as while the node pauses. */
export type OwnCallOutcome = "answered" | "notSent" | NodeError;

/** `isSame`: whether the error is a failure of the kind that is to be confirmed. */
export const confirmationOf = (outcome: OwnCallOutcome, isSame: (error: NodeError) => boolean): Confirmation => {
  if (outcome === "notSent") {
    return "notAsked";
  }
  return outcome !== "answered" && isSame(outcome) ? "confirmed" : "contradicted";
};

/** Decides whether a node that fails gets no requests: it does not respond, or its responses are not JSON-RPC. */
export class NodeFailures {
  /** Counts HTTP requests. All calls of one request count once. */
  readonly breaker: Breaker;
  readonly #labels: NodeLabels;
  readonly #host: string;
  readonly #telemetry: Telemetry;
  #last: NodeError | undefined;

  constructor(
    { labels, host, sendOwnCall }: FailingNode,
    breaker: NonNullable<TransportOptions["breaker"]> = DEFAULT_BREAKER,
    telemetry: Telemetry,
  ) {
    this.#labels = labels;
    this.#host = host;
    this.#telemetry = telemetry;
    this.breaker = new Breaker({
      ...breaker,
      onChange: (isOut) => this.#onChange(isOut),
      confirm: async () => confirmationOf(await sendOwnCall(), isFault),
    });
    telemetry.metrics.upstreamBreaker.set(this.#labels, 0);
  }

  /** The node failed too often, and is not to be tried yet. */
  get isOut(): boolean {
    return !this.breaker.available;
  }

  /** Why the node is out; undefined for a node in use. */
  get reason(): string | undefined {
    if (!this.isOut) {
      return undefined;
    }
    return this.#last === undefined ? "it failed too often" : `it failed too often: ${reasonOf(this.#last)}`;
  }

  /** Records the error of a call. An error that is no fault of the node has no effect. */
  recordError(error: NodeError): void {
    if (isFault(error)) {
      this.#last = error;
    }
  }

  #onChange(isOut: boolean): void {
    const { log, metrics } = this.#telemetry;
    metrics.upstreamBreaker.set(this.#labels, isOut ? 1 : 0);
    const fields = { ...this.#labels, host: this.#host };
    if (isOut) {
      log.warn({ ...fields, ...(this.#last && factsOf(this.#last)) }, "node is not used: it failed too often");
    } else {
      log.warn(fields, "node is used again");
    }
  }
}

/** After a wrong response, a node is used only if no other node can be used, for this time. */
const SUSPENDED_MS = 30_000;

/** Counts the responses of one node that failed verification, and suspends the node. */
export class WrongAnswers {
  readonly #labels: NodeLabels;
  readonly #telemetry: Telemetry;
  readonly #counted = new WeakSet<UnverifiedError>();
  /** Runs while the node is suspended. Each wrong response starts the time again. */
  #timer: NodeJS.Timeout | undefined;

  constructor(labels: NodeLabels, telemetry: Telemetry) {
    this.#labels = labels;
    this.#telemetry = telemetry;
  }

  get isSuspended(): boolean {
    return this.#timer !== undefined;
  }

  /** Records an error that shows a wrong response. Other errors, and an error that was counted before, have no effect. */
  record(error: unknown, method?: string): void {
    if (!(error instanceof UnverifiedError) || !error.isCertain || this.#counted.has(error)) {
      return;
    }
    this.#counted.add(error);
    const { check } = error;
    this.#telemetry.metrics.verifyFailures.inc({ ...this.#labels, check });
    this.#suspend(check, method);
  }

  isCounted(error: UnverifiedError): boolean {
    return this.#counted.has(error);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #suspend(check: Check, method: string | undefined): void {
    const { log, metrics } = this.#telemetry;
    if (!this.isSuspended) {
      log.warn({ ...this.#labels, check, method }, "node is suspended: its response was wrong");
      metrics.upstreamSuspended.set(this.#labels, 1);
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#resume(), SUSPENDED_MS).unref();
  }

  #resume(): void {
    this.#timer = undefined;
    const { log, metrics } = this.#telemetry;
    metrics.upstreamSuspended.set(this.#labels, 0);
    log.info(this.#labels, "node is used again after its wrong response");
  }
}
