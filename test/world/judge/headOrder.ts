import { isAncestor, type TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";

interface SeenHead {
  readonly number: number;
  readonly startMs: number;
}

/** Whether the chain left a branch between two times. */
const hasReorganised = (chain: TruthChain, fromMs: number, toMs: number): boolean => {
  const heads = chain.headsBetween(fromMs, toMs);
  return heads.some((newer, index) => {
    const older: TruthBlock | undefined = heads[index + 1];
    return older !== undefined && !isAncestor(older, newer);
  });
};

/** A value that only a reorganisation lowers, as one client saw it: a head, or a nonce. */
export class RisingValue {
  readonly #chain: TruthChain;
  readonly #last = new Map<string, SeenHead>();

  constructor(chain: TruthChain) {
    this.#chain = chain;
  }

  /** Returns the value before if it went down without a reorganisation. `key` names the value and its source. */
  see(key: string, number: number, startMs: number, endMs: number): number | undefined {
    const before = this.#last.get(key);
    this.#last.set(key, { number, startMs });
    if (before === undefined || number >= before.number) {
      return undefined;
    }
    const sinceMs = before.startMs - this.#chain.lagBound.since(before.startMs);
    return hasReorganised(this.#chain, sinceMs, endMs) ? undefined : before.number;
  }
}

/** The heads that one client saw, one request after the other. */
export class HeadOrder {
  /** The longest step back across replicas: devnet time between the two heads. */
  longestStepBackMs = 0;
  readonly #chain: TruthChain;
  readonly #byReplica: RisingValue;
  #highest: SeenHead | undefined;

  constructor(chain: TruthChain) {
    this.#chain = chain;
    this.#byReplica = new RisingValue(chain);
  }

  /** Returns the text of a fault if the head of this replica went back without a reorganisation. */
  see(replica: string, number: number, startMs: number, endMs: number): string | undefined {
    this.#measure(number, startMs, endMs);
    const before = this.#byReplica.see(replica, number, startMs, endMs);
    return before === undefined ? undefined : `the head of replica ${replica} went from ${before} to ${number}`;
  }

  #measure(number: number, startMs: number, endMs: number): void {
    const highest = this.#highest;
    if (highest === undefined || number >= highest.number) {
      this.#highest = { number, startMs };
      return;
    }
    if (hasReorganised(this.#chain, highest.startMs - this.#chain.lagBound.since(highest.startMs), endMs)) {
      this.#highest = { number, startMs };
      return;
    }
    const [low, high] = [this.#chain.publishedMsOf(number), this.#chain.publishedMsOf(highest.number)];
    this.longestStepBackMs = Math.max(this.longestStepBackMs, high - low);
  }
}
