import type { LoggerOptions } from "pino";

/** At most one line of each kind is logged in this time. It has the number of skipped lines. */
const FIRST_SAMPLE_MS = 1_000;
/** The time doubles with each line, up to this limit. After a pause of this length, it is the first time again. */
const MAX_SAMPLE_MS = 60_000;
/** Kinds in memory. The texts are constants, and chains and nodes are configured. */
const MAX_KINDS = 10_000;
/** pino's number of the level `warn`. */
const WARN = 40;

/** Samples the lines of one kind: a few show an outage as well as a million. */
export class LineSampler {
  #nextMs = Number.NEGATIVE_INFINITY;
  #sampleMs = FIRST_SAMPLE_MS;
  #skipped = 0;

  /** Returns the number of lines that were skipped before this one. Undefined if this one is skipped. */
  take(): number | undefined {
    const nowMs = performance.now();
    if (nowMs < this.#nextMs) {
      this.#skipped++;
      return undefined;
    }
    this.#sampleMs =
      nowMs > this.#nextMs + MAX_SAMPLE_MS ? FIRST_SAMPLE_MS : Math.min(2 * this.#sampleMs, MAX_SAMPLE_MS);
    this.#nextMs = nowMs + this.#sampleMs;
    const skipped = this.#skipped;
    this.#skipped = 0;
    return skipped;
  }
}

/** Returns the kind of an error line: its text, chain and node. Undefined for a line without an error. */
const kindOf = (fields: unknown, text: unknown): string | undefined => {
  if (typeof fields !== "object" || fields === null || !("err" in fields)) {
    return undefined;
  }
  const chain = "chain" in fields ? fields.chain : "";
  const node = "node" in fields ? fields.node : "";
  return `${text}\n${chain}\n${node}`;
};

type LogMethod = NonNullable<NonNullable<LoggerOptions["hooks"]>["logMethod"]>;

/** Creates the hook that samples every line of level warn or above that has an error (`err`). */
export const createErrorSampling = (): LogMethod => {
  const samplers = new Map<string, LineSampler>();
  const samplerOf = (kind: string): LineSampler => {
    const sampler = samplers.get(kind) ?? new LineSampler();
    if (samplers.size >= MAX_KINDS) {
      samplers.clear();
    }
    samplers.set(kind, sampler);
    return sampler;
  };
  return function (args, method, level) {
    const fields: unknown = args[0];
    const kind = level >= WARN ? kindOf(fields, args[1]) : undefined;
    const skipped = kind === undefined ? 0 : samplerOf(kind).take();
    if (skipped === 0) {
      method.apply(this, args);
    } else if (skipped !== undefined && typeof fields === "object") {
      method.apply(this, [{ ...fields, skipped }, args[1] ?? ""]);
    }
  };
};
