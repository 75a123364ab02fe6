import type { HeadChange, Heads } from "../core/heads.ts";
import type { CallContext, Question, Source } from "../core/source.ts";
import type { Log } from "../telemetry/telemetry.ts";

/** Nobody who asked for the newest block longer ago is still waiting for the next one. */
const ASKED_MS = 30_000;

export interface WarmOptions {
  /** What most ask of a head. */
  readonly questionsOf: (heads: Heads) => {
    readonly receipts: Question;
    readonly block: Question;
    readonly fullBlock: Question;
  };
  readonly contextOf: (heads: Heads) => CallContext;
  readonly log: Log;
}

export interface Warm extends Source {
  /** To be called with every change of heads. */
  onChange(change: HeadChange): void;
}

/**
 * Fetches a new head's receipts and block, the latter in the forms that were asked for, once, before the many who wait for it
 * ask. `source` is the cached one: what it answers is kept, and who asks meanwhile shares the request.
 */
export const warmed = (source: Source, { questionsOf, contextOf, log }: WarmOptions): Warm => {
  let askedMs = Number.NEGATIVE_INFINITY;
  /** When each question of the newest block was asked, by its subject, which leaves the block out. */
  const subjects = new Map<string, number>();

  const note = ({ block, subject, tells }: Question, { view }: CallContext): void => {
    if (block === undefined || block.number !== view.heads.latest.number) return;
    askedMs = performance.now();
    if (tells === "hash") subjects.set(subject, askedMs);
  };
  const wasAsked = ({ subject }: Question): boolean =>
    performance.now() - (subjects.get(subject) ?? Number.NEGATIVE_INFINITY) <= ASKED_MS;

  return {
    request: (question, context) => {
      note(question, context);
      return source.request(question, context);
    },
    onChange: ({ heads, to }) => {
      if (to.length === 0 || performance.now() - askedMs > ASKED_MS) return;
      const { receipts, block, fullBlock } = questionsOf(heads);
      const forms = [block, fullBlock].filter(wasAsked);
      const context = contextOf(heads);
      for (const question of [receipts, ...(forms.length > 0 ? forms : [block])]) {
        source.request(question, context).catch((err: unknown) => {
          // Whoever asks next gets the error, or a better answer.
          log.debug({ err, method: question.method }, "warm-up failed");
        });
      }
    },
  };
};
