import { isAncestor } from "../chain/sealedBlock.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
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
