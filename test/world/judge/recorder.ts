import type { TruthChain } from "../chain/truthChain.ts";
import { type ErrorCircumstances, errorFault, MAX_ERROR_SHARE, MIN_QUIET_SHARE } from "./errorRules.ts";
import type { EventBook } from "./eventBook.ts";
import type { HeadOrder } from "./headOrder.ts";
import { Judge } from "./judge.ts";
import { namesUnknownBlock } from "./namedBlocks.ts";
import type { JudgedAnswer } from "./outcome.ts";

export type FindingKind =
  | "wrong"
  | "stale"
  | "headBack"
  | "lost"
  | "repeated"
  | "orphaned"
  | "ended"
  | "internal"
  | "error"
  | "heap";

export interface Finding {
  readonly kind: FindingKind;
  readonly text: string;
  readonly seconds: number;
  /** The faults that were active. */
  readonly active: readonly string[];
}

const MAX_EXAMPLES = 10;

const increment = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};

/** Counts all answers and events, and collects the findings. */
export class Recorder {
  readonly findings: Finding[] = [];
  readonly findingsByKind = new Map<string, number>();
  readonly answersByMethod = new Map<string, number>();
  readonly errors = new Map<string, number>();
  readonly quietErrors = new Map<string, number>();
  readonly events = new Map<string, number>();
  readonly faults = new Map<string, number>();
  /** Values of `x-forebay-pending`. */
  readonly modes = new Map<string, number>();
  readonly active = new Set<string>();
  readonly #endedMs = new Map<string, number>();
  /** Those of a time without a fault: the quiet bound judges them. */
  quietAnswers = 0;
  errorResponses = 0;
  hits = 0;
  unanswered = 0;
  books = 0;
  /** Blocks that were sent again after a replica had left their branch. */
  returns = 0;
  readonly #judge = new Judge();
  longestStepBackMs = 0;
  readonly #startMs = performance.now();

  /** Responses with a result. */
  get answers(): number {
    return this.#judge.answers;
  }

  find(kind: FindingKind, text: string): void {
    increment(this.findingsByKind, kind);
    if ((this.findingsByKind.get(kind) ?? 0) <= MAX_EXAMPLES) {
      const seconds = Math.round((performance.now() - this.#startMs) / 100) / 10;
      this.findings.push({ kind, text, seconds, active: [...this.active] });
    }
  }

  /** Compares an answer with the record. `replica` is the one that answered, or the connection to it. */
  answer(chain: TruthChain, answer: JudgedAnswer, source: string, replica: string): void {
    const isQuiet = chain.lagBound.isQuiet(answer.startMs, answer.endMs);
    const verdict = this.#judge.judge(chain, answer, replica);
    if (verdict.kind === "error") {
      const circumstances = { isQuiet, namesUnknownBlock: namesUnknownBlock(chain, answer) };
      const { method, params } = answer.call;
      this.#error(verdict.text, circumstances, `${source}: ${method} ${JSON.stringify(params)}`);
      return;
    }
    this.quietAnswers += isQuiet ? 1 : 0;
    increment(this.answersByMethod, answer.call.method);
    if (verdict.kind !== "true") {
      this.find(verdict.kind, `${source}: ${verdict.text}`);
    }
  }

  /** Returns what the run did not show: too few answers of quiet times, or too many errors. */
  shortfalls(): readonly string[] {
    const { quiet, errors } = this.#shares();
    return [
      ...(this.answers > 0 ? [] : ["no answer came"]),
      ...(quiet >= MIN_QUIET_SHARE ? [] : [`the quiet bound judged only a share of ${quiet} of the answers`]),
      ...(errors <= MAX_ERROR_SHARE ? [] : [`errors are a share of ${errors} of the responses`]),
    ];
  }

  #shares(): { readonly quiet: number; readonly errors: number } {
    const round = (share: number): number => Math.round(share * 10_000) / 10_000;
    return {
      quiet: round(this.quietAnswers / Math.max(1, this.answers)),
      errors: round(this.errorResponses / Math.max(1, this.answers + this.errorResponses)),
    };
  }

  #error(text: string, circumstances: ErrorCircumstances, source: string): void {
    this.errorResponses++;
    increment(this.errors, text);
    if (circumstances.isQuiet) {
      increment(this.quietErrors, text);
    }
    const fault = errorFault(text, circumstances);
    if (fault !== undefined) {
      this.find(text.endsWith("Internal error") ? "internal" : "error", `${source}: ${fault}: ${text}`);
    }
  }

  head(order: HeadOrder, replica: string, number: number, answer: JudgedAnswer): void {
    const fault = order.see(replica, number, answer.startMs, answer.endMs);
    if (fault !== undefined) {
      this.find("headBack", fault);
    }
    this.longestStepBackMs = Math.max(this.longestStepBackMs, order.longestStepBackMs);
  }

  /** Compares the events of a subscription or filter that has ended with the record. */
  end(book: EventBook, endMs: number, source: string): void {
    this.books++;
    this.returns += book.returns;
    this.events.set(book.kind, (this.events.get(book.kind) ?? 0) + book.events);
    for (const { kind, text } of book.check(endMs)) {
      this.find(kind, `${source}: ${text}`);
    }
  }

  mode(name: string): void {
    increment(this.modes, name);
  }

  beginFault(name: string): void {
    increment(this.faults, name);
    this.active.add(name);
  }

  endFault(name: string): void {
    this.active.delete(name);
    this.#endedMs.set(name, performance.now());
  }

  /** Whether a fault was active at some time since `fromMs`. */
  wasActive(name: string, fromMs: number): boolean {
    return this.active.has(name) || (this.#endedMs.get(name) ?? 0) >= fromMs;
  }

  report(): object {
    return {
      answers: this.answers,
      answersASecond: Math.round((this.answers / (performance.now() - this.#startMs)) * 1_000),
      lostEvents: this.findingsByKind.get("lost") ?? 0,
      repeatedEvents: this.findingsByKind.get("repeated") ?? 0,
      unexpectedEnds: this.findingsByKind.get("ended") ?? 0,
      hits: this.hits,
      unanswered: this.unanswered,
      shares: this.#shares(),
      shortfalls: this.shortfalls(),
      errors: Object.fromEntries(this.errors),
      quietErrors: Object.fromEntries(this.quietErrors),
      events: Object.fromEntries(this.events),
      books: this.books,
      returns: this.returns,
      modes: Object.fromEntries(this.modes),
      faults: Object.fromEntries(this.faults),
      staleness: this.#judge.staleness.report(),
      longestStepBackMs: Math.round(this.longestStepBackMs),
      methods: Object.fromEntries(this.answersByMethod),
      findings: Object.fromEntries(this.findingsByKind),
      examples: this.findings,
    };
  }
}
