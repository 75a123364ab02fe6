import type { HeadChange } from "../chain/heads.ts";
import type { CallContext, Question, Source } from "../chain/source.ts";
import type { Log } from "../telemetry.ts";

/** Nobody who asked for `latest` longer ago is still waiting for the next block. */
const ASKED_MS = 30_000;

export interface WarmOptions {
  /** The cached source: what it answers is kept, and who asks meanwhile shares the request. */
  readonly source: Source;
  /** What most ask of a new head: its block and its receipts. */
  readonly questionsOf: (change: HeadChange) => readonly Question[];
  readonly contextOf: (change: HeadChange) => CallContext;
  /** `performance.now()` milliseconds of the last call that asked for `latest`; undefined before the first. */
  readonly lastAskedMs: () => number | undefined;
  readonly log: Log;
}

/** Fetches a new head's answers once, before the many who wait for it ask. To be called with every change of heads. */
export const createWarm =
  ({ source, questionsOf, contextOf, lastAskedMs, log }: WarmOptions) =>
  (change: HeadChange): void => {
    const askedMs = lastAskedMs();
    if (askedMs === undefined || performance.now() - askedMs > ASKED_MS) return;
    const context = contextOf(change);
    for (const question of questionsOf(change)) {
      source.request(question, context).catch((err: unknown) => {
        // Whoever asks next gets the error, or a better answer.
        log.debug({ err, method: question.method }, "warm-up failed");
      });
    }
  };
