import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { createChoices } from "./random.ts";
import { StallWatch } from "./stallWatch.ts";
import { Finding, type FuzzTarget } from "./target.ts";

export interface FuzzOptions {
  readonly seed: number;
  readonly seconds: number;
  /** Runs only this case. */
  readonly only?: number | undefined;
}

export interface FoundFault {
  readonly text: string;
  readonly index: number;
  readonly input: string;
  readonly stack: string | undefined;
}

export interface FuzzReport {
  readonly executions: number;
  readonly executionsPerSecond: number;
  readonly longestStallMs: number;
  readonly growthBytes: number;
  /** Errors that nobody caught, of known faults of libraries. */
  readonly knownFaults: number;
  /** Checks by name, if the target counts them. */
  readonly counts: Readonly<Record<string, number>> | undefined;
  readonly findings: readonly FoundFault[];
}

const MAX_STALL_MS = 250;
const MAX_GROWTH_BYTES = 64 * 1024 * 1024;
const MAX_FINDINGS = 5;
/** Longer than every deadline of forebay. */
const MAX_CASE_MS = 45_000;
const MAX_INPUT = 2_000;
/** The first part of a run fills caches and compiles code. */
const WARM_SHARE = 0.25;
/** A synchronous target gives up the thread after this time. */
const TURN_MS = 10;

const heapBytes = (): number => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const stackOf = (error: unknown): string | undefined =>
  error instanceof Error ? ((error.cause instanceof Error ? error.cause.stack : undefined) ?? error.stack) : undefined;

const describe = (error: unknown, index: number): FoundFault => ({
  text: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
  index,
  input: error instanceof Finding ? error.input.slice(0, MAX_INPUT) : "",
  stack: stackOf(error),
});

/** Runs cases until the time is over or there are enough findings. */
class FuzzLoop {
  readonly findings: FoundFault[] = [];
  executions = 0;
  longestStallMs = 0;
  #next = 0;
  readonly #target: FuzzTarget;
  readonly #options: FuzzOptions;
  readonly #stalls = new StallWatch();

  constructor(target: FuzzTarget, options: FuzzOptions) {
    this.#target = target;
    this.#options = options;
  }

  find(error: unknown, index: number): void {
    if (this.findings.length < MAX_FINDINGS) {
      this.findings.push(describe(error, index));
    }
  }

  /** The newest case, for errors that nobody caught. */
  get newest(): number {
    return this.#next - 1;
  }

  close(): void {
    this.#stalls.close();
  }

  async runUntil(endMs: number): Promise<void> {
    const { atOnce = 1 } = this.#target;
    await Promise.all(Array.from({ length: atOnce }, () => this.#work(endMs)));
  }

  async runOnly(index: number): Promise<void> {
    this.#next = index;
    await this.#runCase();
  }

  async #work(endMs: number): Promise<void> {
    let turnMs = performance.now();
    while (performance.now() < endMs && this.findings.length < MAX_FINDINGS) {
      await this.#runCase();
      if (performance.now() - turnMs > TURN_MS) {
        await nextTurn();
        turnMs = performance.now();
      }
    }
  }

  async #runCase(): Promise<void> {
    const index = this.#next++;
    this.#stalls.take();
    const ended = new AbortController();
    const late = sleep(MAX_CASE_MS, undefined, { signal: ended.signal }).then(() => {
      throw new Finding(`the case did not end within ${MAX_CASE_MS} ms`, "");
    });
    // It rejects when `ended` aborts it, and nobody waits for it then.
    late.catch(() => undefined);
    try {
      await Promise.race([this.#target.run(createChoices(this.#options.seed, index), index), late]);
    } catch (error) {
      this.find(error, index);
    }
    ended.abort();
    this.executions++;
    const stallMs = this.#stalls.take();
    this.longestStallMs = Math.max(this.longestStallMs, stallMs);
    if (stallMs > MAX_STALL_MS) {
      this.find(new Finding(`the event loop was blocked for ${Math.round(stallMs)} ms`, ""), index);
    }
  }
}

/** Runs random cases of a target. A finding is an error, a stall, or growth of memory. */
export const fuzz = async (target: FuzzTarget, options: FuzzOptions): Promise<FuzzReport> => {
  const { seconds, only } = options;
  const loop = new FuzzLoop(target, options);
  let knownFaults = 0;
  const onUncaught = (error: unknown): void => {
    if (target.isKnown?.(error) === true) {
      knownFaults++;
      return;
    }
    loop.find(new Finding(`uncaught: ${String(error)}`, "", error), loop.newest);
  };
  process.on("uncaughtException", onUncaught).on("unhandledRejection", onUncaught);
  const startMs = performance.now();
  let growthBytes = 0;
  try {
    if (only === undefined) {
      await loop.runUntil(startMs + WARM_SHARE * seconds * 1_000);
      const warmBytes = heapBytes();
      await loop.runUntil(startMs + seconds * 1_000);
      growthBytes = heapBytes() - warmBytes;
    } else {
      await loop.runOnly(only);
    }
    // Errors of the last case may be thrown in the next turns.
    await nextTurn();
  } finally {
    process.off("uncaughtException", onUncaught).off("unhandledRejection", onUncaught);
    loop.close();
  }
  if (growthBytes > MAX_GROWTH_BYTES) {
    loop.find(new Finding(`the heap grew by ${growthBytes} bytes`, ""), loop.newest);
  }
  return {
    executions: loop.executions,
    executionsPerSecond: Math.round(loop.executions / ((performance.now() - startMs) / 1_000)),
    longestStallMs: Math.round(loop.longestStallMs),
    growthBytes,
    knownFaults,
    counts: target.counts?.(),
    findings: loop.findings,
  };
};
