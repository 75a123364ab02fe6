import { type Check, UnverifiedError } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { NodeLabels } from "./nodeConfig.ts";

/** After a wrong response, a node is used only if no other node can be used, for this time. */
const SUSPENDED_MS = 30_000;

/** Checks of the form of a response. A node that fails them is broken, but has stated no wrong value. */
const FORM_CHECKS: ReadonlySet<Check> = new Set(["json", "id", "status", "form"]);

/** Counts the responses of one node that failed verification, and suspends the node. */
export class WrongAnswers {
  readonly #labels: NodeLabels;
  readonly #onLie: () => void;
  readonly #telemetry: Telemetry;
  readonly #counted = new WeakSet<UnverifiedError>();
  /** Runs while the node is suspended. Each wrong response starts the time again. */
  #timer: NodeJS.Timeout | undefined;

  /** `onLie`: called if the content of a response was wrong, so that other values of the node may be wrong too. */
  constructor(labels: NodeLabels, onLie: () => void, telemetry: Telemetry) {
    this.#labels = labels;
    this.#onLie = onLie;
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
    if (!FORM_CHECKS.has(check)) {
      this.#onLie();
    }
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
