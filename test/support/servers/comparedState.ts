import type { Heads } from "../../../src/core/heads.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import { createRandom } from "../builders/randomValues.ts";
import { type CallResult, callAtOneBlock } from "../clients/callAtOneBlock.ts";
import { expectedResult, randomStateRead, type StateReadCall } from "../clients/stateReads.ts";
import type { StandInChain } from "../standIn/standInChain.ts";
import type { Service } from "./service.ts";

/** A value that differs from the value of the stand-in at the same hash. */
export interface StateDifference {
  readonly read: string;
  readonly tag: string;
  readonly block: string;
  readonly isCanonical: boolean;
  readonly result: string;
  readonly expected: string;
}

export interface StateTally {
  comparisons: number;
  /** Reads that were repeated at another block, because their block was replaced during the request. */
  repeated: number;
  /** Requests without a block, because it was replaced or is not known yet. */
  skipped: number;
  errors: number;
  readonly differences: StateDifference[];
}

interface Answered {
  readonly tag: string;
  readonly hash: Hash;
  readonly calls: readonly StateReadCall[];
  readonly results: readonly CallResult[];
}

const READS = 12;
/** Reads within the newest 256 blocks. */
const MAX_DEPTH = 250;
const KEPT_DIFFERENCES = 20;
const LATEST_SHARE = 0.7;

const quantity = (number: number): string => `0x${number.toString(16)}`;

/** Sends random reads to a service, and compares each result with the stand-in's state at the same hash. */
export class ComparedState {
  readonly tally: StateTally = { comparisons: 0, repeated: 0, skipped: 0, errors: 0, differences: [] };
  readonly #chain: StandInChain;
  readonly #url: string;
  readonly #random: () => number;
  readonly #views: Heads[] = [];

  constructor(chain: StandInChain, service: Service, seed: number) {
    this.#chain = chain;
    this.#url = service.url;
    this.#random = createRandom(seed);
    const heads = service.chains[0]?.upstreams.heads;
    heads?.subscribe(({ heads: next }) => this.#views.push(next));
  }

  /** Sends batches until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.compareOnce();
    }
  }

  /** Sends one batch, and compares its results. */
  async compareOnce(): Promise<void> {
    const { height } = this.#chain;
    const tag = this.#random() < LATEST_SHARE ? "latest" : quantity(height - Math.floor(this.#random() * MAX_DEPTH));
    const calls = Array.from({ length: READS }, () => randomStateRead(this.#random, height));
    const before = this.#views.length;
    const answered = await callAtOneBlock(
      this.#url,
      tag,
      calls.map(({ method, params }) => ({ method, params: [...params, tag] })),
    );
    if (answered === undefined) {
      this.tally.skipped++;
      return;
    }
    const { hash, results } = answered;
    this.#check({ tag, hash, calls, results }, this.#views.slice(Math.max(0, before - 1)));
  }

  #check({ tag, hash, calls, results }: Answered, views: readonly Heads[]): void {
    for (const [index, call] of calls.entries()) {
      const { result, error } = results[index] ?? {};
      if (error !== undefined) {
        this.tally.errors++;
        continue;
      }
      this.tally.comparisons++;
      const expected = expectedResult(call, this.#chain.stateAt(hash));
      if (result === expected) {
        continue;
      }
      if (this.#isRepeated({ tag, hash, call, result }, views)) {
        this.tally.repeated++;
      } else if (this.tally.differences.length < KEPT_DIFFERENCES) {
        this.tally.differences.push({
          ...{
            read: `${call.method} ${call.params.join(" ")}`,
            tag,
            block: `${this.#chain.block(hash)?.number} ${hash}`,
          },
          ...{ isCanonical: this.#chain.values.isCanonical(hash), result: String(result), expected },
        });
      }
    }
  }

  /** Whether the block was replaced during the request, and the result is that of its replacement. */
  #isRepeated(
    { tag, hash, call, result }: { tag: string; hash: Hash; call: StateReadCall; result: unknown },
    views: readonly Heads[],
  ): boolean {
    const blockIn = (view: Heads) => (tag === "latest" ? view.latest : view.at(BigInt(tag)))?.hash;
    const number = BigInt(this.#chain.block(hash)?.number ?? 0);
    const isReplaced = views.some((view) => (view.at(number)?.hash ?? hash) !== hash);
    if (!isReplaced) {
      return false;
    }
    return views.some((view) => {
      const other = blockIn(view);
      return other !== undefined && expectedResult(call, this.#chain.stateAt(other)) === result;
    });
  }
}
