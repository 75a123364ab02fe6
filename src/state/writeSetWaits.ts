import type { Telemetry } from "../telemetry/telemetry.ts";

/** Returns what a promise resolves with. Undefined: it does not do so within the time. */
export const resultWithin = <T>(running: Promise<T>, forMs: number): Promise<{ readonly result: T } | undefined> => {
  const { promise, resolve } = Promise.withResolvers<{ readonly result: T } | undefined>();
  const timer = setTimeout(() => resolve(undefined), forMs);
  void running.then((result) => {
    clearTimeout(timer);
    resolve({ result });
  });
  return promise;
};

interface WriteSetWaitsOptions {
  /** The longest wait, in milliseconds. */
  readonly waitMs: number;
  readonly blockTimeMs: () => number;
  readonly chain: string;
  readonly telemetry: Pick<Telemetry, "metrics">;
}

/** What a read found after its wait. */
interface Waited<T> {
  /** Undefined: a node has to answer. */
  readonly found: T | undefined;
  /** Whether the write set was applied in time, or will not be. */
  readonly isSettled: boolean;
}

/** Waits of reads for the write set of their block. None takes longer than half of a block. */
export class WriteSetWaits {
  readonly #options: WriteSetWaitsOptions;

  constructor(options: WriteSetWaitsOptions) {
    this.#options = options;
  }

  /** Waits until `settled`, and then searches. Counts the outcome: `late` if the write set did not come in time. */
  async find<T>(settled: Promise<void>, search: () => T | undefined): Promise<Waited<T>> {
    const { waitMs, blockTimeMs, chain, telemetry } = this.#options;
    const isSettled = (await resultWithin(settled, Math.min(waitMs, blockTimeMs() / 2))) !== undefined;
    const found = search();
    const result = found !== undefined ? "hit" : isSettled ? "unknown" : "late";
    telemetry.metrics.stateWaits.inc({ chain, result });
    return { found, isSettled };
  }
}
