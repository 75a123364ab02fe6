import type { ChainCall } from "../../support/servers/sealedChain.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import type { PostedCalls } from "../clients/postCalls.ts";
import { type ErrorCircumstances, errorFault, MAX_ERROR_SHARE, MIN_QUIET_SHARE } from "./errorRules.ts";
import type { EventBook } from "./eventBook.ts";
import { Judge } from "./judge.ts";
import { namesUnknownBlock } from "./namedBlocks.ts";
import { headOf, type JudgedAnswer } from "./outcome.ts";
import { RisingValue } from "./risingValue.ts";
import type { WrongClass } from "./wrongClass.ts";

/** What no proxy may do. */
const TRUTH = ["wrong", "stale", "headBack", "nonceBack", "lost", "repeated", "orphaned"] as const;

/** The others are findings about forebay alone. */
export type FindingKind = (typeof TRUTH)[number] | "ended" | "internal" | "error" | "heap";

export interface Finding {
  readonly kind: FindingKind;
  readonly text: string;
  readonly seconds: number;
  /** The faults that were active. */
  readonly active: readonly string[];
}

/** What the clients of one proxy saw. */
export interface ScoreReport {
  readonly calls: number;
  readonly answers: number;
  readonly wrong: Readonly<Record<string, number>>;
  readonly stepsBack: { readonly latest: number; readonly nonce: number; readonly filter: number };
  /** For how long the heads that `latest` showed were outdated when the request began, in milliseconds. */
  readonly age: { readonly median: number; readonly p99: number; readonly longest: number };
  /** Errors and lost responses of calls that an honest node answers, by text. */
  readonly errors: Readonly<Record<string, number>>;
  /** Methods that the proxy does not offer. */
  readonly notOffered: readonly string[];
  readonly longestStallMs: number;
  readonly nodeCallsPer1000: number;
  readonly unitsPer1000: number;
  readonly examples: readonly Finding[];
}

export const NOT_OFFERED = -32_601;
const MAX_EXAMPLES = 10;
const MAX_TEXT = 4_000;
const SHARE = 0.99;
const MAX_AGES = 1_000_000;

const increment = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};

/** The heads and nonces of one chain that one client saw, one request after the other. */
export class ClientSight {
  readonly latest: RisingValue;
  readonly nonces: RisingValue;

  constructor(chain: TruthChain) {
    this.latest = new RisingValue(chain);
    this.nonces = new RisingValue(chain);
  }
}

/** Where an answer came from. */
export interface Source {
  /** The instance of the proxy, or the connection to it. */
  readonly replica: string;
  readonly text: string;
}

/** Counts all answers and events of one proxy, and collects the findings. */
export class Recorder {
  readonly findings: Finding[] = [];
  readonly #counts = new Map<FindingKind, number>();
  readonly #judge = new Judge();
  readonly #answersByMethod = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  readonly #quietErrors = new Map<string, number>();
  readonly #notOffered = new Set<string>();
  readonly #events = new Map<string, number>();
  readonly #faults = new Map<string, number>();
  /** Values of `x-forebay-pending`. */
  readonly #modes = new Map<string, number>();
  readonly #active = new Set<string>();
  readonly #endedMs = new Map<string, number>();
  readonly #ages: number[] = [];
  readonly #startMs = performance.now();
  #calls = 0;
  #hits = 0;
  /** Answers of a time without a fault: the quiet bound judges them. */
  #quietAnswers = 0;
  #errorResponses = 0;
  #unanswered = 0;
  #books = 0;
  #returns = 0;
  #longestStallMs = 0;

  /** How many findings there are of a kind, or wrong answers of a class. */
  count(kind: FindingKind | WrongClass): number {
    return this.#counts.get(kind as FindingKind) ?? this.#judge.wrong.get(kind as WrongClass) ?? 0;
  }

  find(kind: FindingKind, text: string): void {
    this.#counts.set(kind, this.count(kind) + 1);
    if (this.count(kind) <= MAX_EXAMPLES) {
      const seconds = Math.round((performance.now() - this.#startMs) / 100) / 10;
      this.findings.push({ kind, text: text.slice(0, MAX_TEXT), seconds, active: [...this.#active] });
    }
  }

  /** Judges the responses to one request. */
  add(chain: TruthChain, calls: readonly ChainCall[], posted: PostedCalls, sight: ClientSight, replica: string): void {
    const { startMs, endMs, headers, responses, failure } = posted;
    const cacheStatus = String(headers["cache-status"] ?? "");
    const mode = headers["x-forebay-pending"];
    this.#longestStallMs = Math.max(this.#longestStallMs, endMs - startMs);
    this.#hits += cacheStatus.startsWith("forebay; hit") ? calls.length : 0;
    if (mode !== undefined) {
      increment(this.#modes, String(mode));
    }
    const source = { replica, text: `${replica} ${cacheStatus}` };
    for (const [index, call] of calls.entries()) {
      const response = responses[index];
      if (failure !== undefined || response === undefined) {
        this.fail(failure ?? "no response");
      } else {
        const { result, error } = response;
        this.answer(chain, { call, result, error, startMs, endMs }, sight, source);
      }
    }
  }

  /** Compares an answer with the record. */
  answer(chain: TruthChain, answer: JudgedAnswer, sight: ClientSight, { replica, text }: Source): void {
    this.#calls++;
    const { call, error, startMs, endMs } = answer;
    const isQuiet = chain.lagBound.isQuiet(startMs, endMs);
    const verdict = this.#judge.judge(chain, answer, replica);
    if (error?.code === NOT_OFFERED) {
      this.refuse(call.method);
      return;
    }
    if (verdict.kind === "error") {
      const circumstances = { isQuiet, namesUnknownBlock: namesUnknownBlock(chain, answer) };
      this.#error(verdict.text, circumstances, `${text}: ${call.method} ${JSON.stringify(call.params)}`);
      return;
    }
    this.#quietAnswers += isQuiet ? 1 : 0;
    increment(this.#answersByMethod, call.method);
    if (verdict.kind !== "true") {
      this.find(verdict.kind, `${verdict.class}: ${text}: ${verdict.text}`);
    }
    if (answer.result !== null && answer.result !== undefined) {
      this.#seeHead(chain, answer, sight, replica);
      this.#seeNonce(answer, sight, replica);
    }
  }

  /** Counts a call without a response. */
  fail(text: string): void {
    this.#calls++;
    this.#unanswered++;
    increment(this.#errors, text);
  }

  /** Counts the time of a request that has no response at the end. */
  addOpen(openMs: number): void {
    this.#longestStallMs = Math.max(this.#longestStallMs, openMs);
  }

  refuse(method: string): void {
    this.#notOffered.add(method);
  }

  /** Counts an error of a call without a true answer. `isExpected`: the state of the proxy explains it. */
  error(text: string, isExpected: boolean): void {
    increment(this.#errors, text);
    if (!isExpected) {
      this.find("error", text);
    }
  }

  /** Compares the events of a subscription or filter that has ended with the record. */
  end(book: EventBook, endMs: number, source: string): void {
    this.#books++;
    this.#returns += book.returns;
    this.#events.set(book.kind, (this.#events.get(book.kind) ?? 0) + book.events);
    for (const { kind, text } of book.check(endMs)) {
      this.find(kind, `${source}: ${text}`);
    }
  }

  beginFault(name: string): void {
    increment(this.#faults, name);
    this.#active.add(name);
  }

  endFault(name: string): void {
    this.#active.delete(name);
    this.#endedMs.set(name, performance.now());
  }

  /** Whether a fault was active at some time since `fromMs`. */
  wasActive(name: string, fromMs: number): boolean {
    return this.#active.has(name) || (this.#endedMs.get(name) ?? 0) >= fromMs;
  }

  /** Returns what the run did not show: too few answers of quiet times, or too many errors. */
  shortfalls(): readonly string[] {
    const { quiet, errors } = this.#shares();
    return [
      ...(this.#judge.answers > 0 ? [] : ["no answer came"]),
      ...(quiet >= MIN_QUIET_SHARE ? [] : [`the quiet bound judged only a share of ${quiet} of the answers`]),
      ...(errors <= MAX_ERROR_SHARE ? [] : [`errors are a share of ${errors} of the responses`]),
    ];
  }

  score(nodeCalls: number, units: number): ScoreReport {
    const ages = this.#ages.toSorted((one, other) => one - other);
    const at = (share: number): number => Math.round(ages[Math.floor(share * (ages.length - 1))] ?? 0);
    const per1000 = (value: number): number => Math.round((value * 1_000) / Math.max(1, this.#calls));
    const filter = this.count("lost") + this.count("repeated") + this.count("orphaned");
    return {
      calls: this.#calls,
      answers: this.#judge.answers,
      wrong: Object.fromEntries(this.#judge.wrong),
      stepsBack: { latest: this.count("headBack"), nonce: this.count("nonceBack"), filter },
      age: { median: at(1 / 2), p99: at(SHARE), longest: at(1) },
      errors: Object.fromEntries(this.#errors),
      notOffered: [...this.#notOffered].toSorted(),
      longestStallMs: Math.round(this.#longestStallMs),
      nodeCallsPer1000: per1000(nodeCalls),
      unitsPer1000: per1000(units),
      examples: this.findings,
    };
  }

  /** Returns what the score leaves out. */
  report(): object {
    return {
      answersASecond: Math.round((this.#judge.answers / (performance.now() - this.#startMs)) * 1_000),
      hits: this.#hits,
      unanswered: this.#unanswered,
      shares: this.#shares(),
      shortfalls: this.shortfalls(),
      quietErrors: Object.fromEntries(this.#quietErrors),
      events: Object.fromEntries(this.#events),
      books: this.#books,
      returns: this.#returns,
      modes: Object.fromEntries(this.#modes),
      faults: Object.fromEntries(this.#faults),
      staleness: this.#judge.staleness.report(),
      methods: Object.fromEntries(this.#answersByMethod),
      findings: Object.fromEntries(this.#counts),
    };
  }

  #shares(): { readonly quiet: number; readonly errors: number } {
    const { answers } = this.#judge;
    const round = (share: number): number => Math.round(share * 10_000) / 10_000;
    return {
      quiet: round(this.#quietAnswers / Math.max(1, answers)),
      errors: round(this.#errorResponses / Math.max(1, answers + this.#errorResponses)),
    };
  }

  #error(text: string, circumstances: ErrorCircumstances, source: string): void {
    this.#errorResponses++;
    if (!circumstances.namesUnknownBlock) {
      increment(this.#errors, text);
    }
    if (circumstances.isQuiet) {
      increment(this.#quietErrors, text);
    }
    const fault = errorFault(text, circumstances);
    if (fault !== undefined) {
      this.find(text.endsWith("Internal error") ? "internal" : "error", `${source}: ${fault}: ${text}`);
    }
  }

  #seeHead(chain: TruthChain, answer: JudgedAnswer, sight: ClientSight, replica: string): void {
    const number = headOf(answer);
    if (number === undefined) {
      return;
    }
    if (this.#ages.length < MAX_AGES) {
      this.#ages.push(Math.max(0, answer.startMs - chain.publishedMsOf(number + 1)));
    }
    const before = sight.latest.see(replica, number, answer.startMs, answer.endMs);
    if (before !== undefined) {
      this.find("headBack", `latest of ${replica} went from ${before} to ${number}`);
    }
  }

  #seeNonce({ call, result, startMs, endMs }: JudgedAnswer, sight: ClientSight, replica: string): void {
    const [address, block] = call.params;
    if (call.method !== "eth_getTransactionCount" || block !== "latest") {
      return;
    }
    const before = sight.nonces.see(`${replica} ${address}`, Number(result), startMs, endMs);
    if (before !== undefined) {
      this.find("nonceBack", `the nonce of ${address} went from ${before} to ${Number(result)}`);
    }
  }
}
