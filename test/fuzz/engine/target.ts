import type { Lifespan } from "../../support/servers/redis.ts";
import type { Choices } from "./random.ts";

/** What one target checks. It lives until the end of the run. */
export interface FuzzTarget {
  /** Cases that run at the same time. Default: 1. */
  readonly atOnce?: number;
  /** Whether an error that nobody caught is a reported fault of a library. It is counted. */
  isKnown?(error: unknown): boolean;
  /** Returns the checks since the start by name, for the report. */
  counts?(): Readonly<Record<string, number>>;
  /** Runs one case. Throws a Finding, or any other error, if the input shows a fault. */
  run(choices: Choices, index: number): Promise<void> | void;
}

export type CreateTarget = (t: Lifespan) => Promise<FuzzTarget>;

/** A fault, and the input that shows it. */
export class Finding extends Error {
  override readonly name = "Finding";
  readonly input: string;

  constructor(message: string, input: unknown, cause?: unknown) {
    super(message, { cause });
    this.input = typeof input === "string" ? input : (JSON.stringify(input) ?? String(input));
  }
}
