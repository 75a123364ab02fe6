import type { SoakChain } from "../chain/soakChain.ts";
import { AnnouncedHeads } from "./announcedHeads.ts";
import type { EventBook } from "./eventBook.ts";
import type { HeadOrder } from "./headOrder.ts";
import { Staleness } from "./staleness.ts";
import { judge, type SoakAnswer } from "./verdict.ts";

export type FindingKind =
  | "wrong"
  | "stale"
  | "headBack"
  | "lost"
  | "repeated"
  | "orphaned"
  | "ended"
  | "internal"
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
  readonly events = new Map<string, number>();
  readonly faults = new Map<string, number>();
  /** Values of `x-forebay-pending`. */
  readonly modes = new Map<string, number>();
  readonly active = new Set<string>();
  readonly #endedMs = new Map<string, number>();
  answers = 0;
  hits = 0;
  unanswered = 0;
  books = 0;
  /** Blocks that were sent again after a replica had left their branch. */
  returns = 0;
  readonly #staleness = new Staleness();
  readonly #announced = new Map<SoakChain, AnnouncedHeads>();
  longestStepBackMs = 0;
  readonly #startMs = performance.now();

  find(kind: FindingKind, text: string): void {
    increment(this.findingsByKind, kind);
    if ((this.findingsByKind.get(kind) ?? 0) <= MAX_EXAMPLES) {
      const seconds = Math.round((performance.now() - this.#startMs) / 100) / 10;
      this.findings.push({ kind, text, seconds, active: [...this.active] });
    }
  }

  /** Compares an answer with the record. `replica` is the one that answered, if that is known. */
  answer(chain: SoakChain, answer: SoakAnswer, source: string, replica?: string): void {
    this.answers++;
    increment(this.answersByMethod, answer.call.method);
    const announced = this.#announced.get(chain) ?? new AnnouncedHeads();
    this.#announced.set(chain, announced);
    const verdict = judge(chain, answer, replica === undefined ? undefined : announced.before(replica, answer.startMs));
    if (replica !== undefined && verdict.kind === "true") {
      announced.add(replica, chain, answer);
    }
    if (verdict.kind === "true") {
      this.#staleness.add(verdict.lagMs);
    } else if (verdict.kind === "error") {
      increment(this.errors, verdict.text);
    } else {
      this.find(verdict.text === "Internal error" ? "internal" : verdict.kind, `${source}: ${verdict.text}`);
    }
  }

  head(order: HeadOrder, replica: string, number: number, answer: SoakAnswer): void {
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
      errors: Object.fromEntries(this.errors),
      events: Object.fromEntries(this.events),
      books: this.books,
      returns: this.returns,
      modes: Object.fromEntries(this.modes),
      faults: Object.fromEntries(this.faults),
      staleness: this.#staleness.report(),
      longestStepBackMs: Math.round(this.longestStepBackMs),
      methods: Object.fromEntries(this.answersByMethod),
      findings: Object.fromEntries(this.findingsByKind),
      examples: this.findings,
    };
  }
}
