import { type Check, UnverifiedError } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** After a wrong response, a node is used only if no other node can be used, for this time. */
const SUSPENDED_MS = 30_000;

interface SuspensionOptions {
  readonly durationMs?: number;
  onChange(isSuspended: boolean): void;
}

/** Whether a node is suspended. Each new reason starts the time again. */
class Suspension {
  readonly #options: SuspensionOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SuspensionOptions) {
    this.#options = options;
  }

  get isActive(): boolean {
    return this.#timer !== undefined;
  }

  begin(): void {
    const wasActive = this.isActive;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), this.#options.durationMs ?? SUSPENDED_MS).unref();
    if (!wasActive) {
      this.#options.onChange(true);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #end(): void {
    this.#timer = undefined;
    this.#options.onChange(false);
  }
}

export interface WrongAnswersOptions {
  readonly chain: string;
  /** The node's name. */
  readonly name: string;
  /** Called if the content of a response was wrong, so that other values of the node may be wrong too. */
  readonly onLie: () => void;
}

/** Checks of the form of a response. A node that fails them is broken, but has stated no wrong value. */
const FORM_CHECKS: ReadonlySet<Check> = new Set(["json", "id", "status", "form"]);

/** Counts the responses of one node that failed verification, and suspends the node. */
export class WrongAnswers {
  readonly #labels: { readonly chain: string; readonly node: string };
  readonly #telemetry: Telemetry;
  readonly #suspension: Suspension;
  readonly #onLie: () => void;
  readonly #counted = new WeakSet<UnverifiedError>();

  constructor({ chain, name, onLie }: WrongAnswersOptions, telemetry: Telemetry) {
    this.#onLie = onLie;
    this.#labels = { chain, node: name };
    this.#telemetry = telemetry;
    this.#suspension = new Suspension({ onChange: (isSuspended) => this.#onSuspension(isSuspended) });
  }

  get isSuspended(): boolean {
    return this.#suspension.isActive;
  }

  /** Records an error that shows a wrong response. Other errors, and an error that was counted before, have no effect. */
  record(error: unknown, method?: string): void {
    if (!(error instanceof UnverifiedError) || !error.isCertain || this.#counted.has(error)) {
      return;
    }
    this.#counted.add(error);
    const { check } = error;
    const { log, metrics } = this.#telemetry;
    metrics.verifyFailures.inc({ ...this.#labels, check });
    if (!this.isSuspended) {
      log.warn({ ...this.#labels, check, method }, "node is suspended: its response was wrong");
    }
    this.#suspension.begin();
    if (!FORM_CHECKS.has(check)) {
      this.#onLie();
    }
  }

  isCounted(error: UnverifiedError): boolean {
    return this.#counted.has(error);
  }

  close(): void {
    this.#suspension.close();
  }

  #onSuspension(isSuspended: boolean): void {
    const { log, metrics } = this.#telemetry;
    metrics.upstreamSuspended.set(this.#labels, isSuspended ? 1 : 0);
    if (!isSuspended) {
      log.info(this.#labels, "node is used again after its wrong response");
    }
  }
}
