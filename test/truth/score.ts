import type { ChainCall } from "../support/servers/sealedChain.ts";
import type { TruthChain } from "../world/chain/truthChain.ts";
import type { PostedCalls } from "../world/clients/postCalls.ts";
import type { EventBook } from "../world/judge/eventBook.ts";
import { RisingValue } from "../world/judge/headOrder.ts";
import { Judge } from "../world/judge/judge.ts";
import { namesUnknownBlock } from "../world/judge/namedBlocks.ts";
import { headOf, type JudgedAnswer } from "../world/judge/outcome.ts";

const MAX_EXAMPLES = 2;
const MAX_TEXT = 400;
const NOT_OFFERED = -32_601;
const SHARE = 0.99;

/** The values of one scenario and one proxy. */
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
  readonly examples: readonly string[];
}

const increment = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};

/** The heads and nonces that one client saw, one request after the other. */
export class ClientSight {
  readonly latest: RisingValue;
  readonly nonces: RisingValue;

  constructor(chain: TruthChain) {
    this.latest = new RisingValue(chain);
    this.nonces = new RisingValue(chain);
  }
}

/** Counts what the clients of one scenario see. */
export class Score {
  readonly #chain: TruthChain;
  readonly #judge = new Judge();
  readonly #errors = new Map<string, number>();
  readonly #notOffered = new Set<string>();
  readonly #stepsBack = { latest: 0, nonce: 0, filter: 0 };
  readonly #ages: number[] = [];
  readonly #examples = new Map<string, string[]>();
  #calls = 0;
  #longestStallMs = 0;

  constructor(chain: TruthChain) {
    this.#chain = chain;
  }

  /** Judges the responses to one request. `replica` is the instance of the proxy that answered. */
  add(calls: readonly ChainCall[], posted: PostedCalls, sight: ClientSight, replica: string): void {
    const { startMs, endMs, responses, failure } = posted;
    this.#calls += calls.length;
    this.#longestStallMs = Math.max(this.#longestStallMs, endMs - startMs);
    for (const [index, call] of calls.entries()) {
      const response = responses[index];
      if (failure !== undefined || response === undefined) {
        increment(this.#errors, failure ?? "no response");
      } else {
        const { result, error } = response;
        this.#addAnswer({ call, result, error, startMs, endMs }, sight, replica);
      }
    }
  }

  /** Counts the time of a request that has no response at the end of the scenario. */
  addOpen(openMs: number): void {
    this.#longestStallMs = Math.max(this.#longestStallMs, openMs);
  }

  refuse(method: string): void {
    this.#notOffered.add(method);
  }

  error(text: string): void {
    increment(this.#errors, text);
  }

  /** Compares the events of a filter with the record. */
  addFilter(book: EventBook, endMs: number): void {
    for (const { kind, text } of book.check(endMs)) {
      this.#stepsBack.filter++;
      this.#example(`filter ${kind}`, text);
    }
  }

  report(nodeCalls: number, units: number): ScoreReport {
    const ages = this.#ages.toSorted((one, other) => one - other);
    const at = (share: number): number => Math.round(ages[Math.floor(share * (ages.length - 1))] ?? 0);
    const per1000 = (value: number): number => Math.round((value * 1_000) / Math.max(1, this.#calls));
    return {
      calls: this.#calls,
      answers: this.#judge.answers,
      wrong: Object.fromEntries(this.#judge.wrong),
      stepsBack: { ...this.#stepsBack },
      age: { median: at(1 / 2), p99: at(SHARE), longest: at(1) },
      errors: Object.fromEntries(this.#errors),
      notOffered: [...this.#notOffered].toSorted(),
      longestStallMs: Math.round(this.#longestStallMs),
      nodeCallsPer1000: per1000(nodeCalls),
      unitsPer1000: per1000(units),
      examples: [...this.#examples.values()].flat(),
    };
  }

  #addAnswer(answer: JudgedAnswer, sight: ClientSight, replica: string): void {
    const { call, error } = answer;
    const verdict = this.#judge.judge(this.#chain, answer, replica);
    if (verdict.kind === "error") {
      if (error?.code === NOT_OFFERED) {
        this.#notOffered.add(call.method);
      } else if (!namesUnknownBlock(this.#chain, answer)) {
        increment(this.#errors, verdict.text);
        this.#example("error", `${verdict.text}: ${call.method} ${JSON.stringify(call.params)}`);
      }
      return;
    }
    if (verdict.kind !== "true") {
      this.#example(verdict.class, verdict.text);
    }
    if (answer.result !== null && answer.result !== undefined) {
      this.#addHead(answer, sight, replica);
      this.#addNonce(answer, sight, replica);
    }
  }

  #addHead(answer: JudgedAnswer, sight: ClientSight, replica: string): void {
    const number = headOf(answer);
    if (number === undefined) {
      return;
    }
    this.#ages.push(Math.max(0, answer.startMs - this.#chain.publishedMsOf(number + 1)));
    const before = sight.latest.see(replica, number, answer.startMs, answer.endMs);
    if (before !== undefined) {
      this.#stepsBack.latest++;
      this.#example("latest", `latest went from ${before} to ${number}`);
    }
  }

  #addNonce({ call, result, startMs, endMs }: JudgedAnswer, sight: ClientSight, replica: string): void {
    const [address, block] = call.params;
    if (call.method !== "eth_getTransactionCount" || block !== "latest") {
      return;
    }
    const before = sight.nonces.see(`${replica} ${address}`, Number(result), startMs, endMs);
    if (before !== undefined) {
      this.#stepsBack.nonce++;
      this.#example("nonce", `the nonce of ${address} went from ${before} to ${Number(result)}`);
    }
  }

  #example(kind: string, text: string): void {
    const examples = this.#examples.get(kind) ?? [];
    if (examples.length < MAX_EXAMPLES) {
      this.#examples.set(kind, [...examples, `${kind}: ${text}`.slice(0, MAX_TEXT)]);
    }
  }
}
