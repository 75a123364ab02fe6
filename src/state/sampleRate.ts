/** The share of local answers that are compared, limited to one a second. */
const SHARE = 0.01;
const MIN_INTERVAL_MS = 1_000;

export interface SampleRateOptions {
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** Chooses the local answers of one chain that are compared with a node. Reads and calls share one limit. */
export class SampleRate {
  readonly #options: SampleRateOptions;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(options: SampleRateOptions) {
    this.#options = options;
  }

  /** Called with each local answer. Returns whether to compare it. */
  take(): boolean {
    const { nowMs, random } = this.#options;
    if (random() >= SHARE || nowMs() - this.#lastMs < MIN_INTERVAL_MS) {
      return false;
    }
    this.#lastMs = nowMs();
    return true;
  }
}
