import type { Heads } from "../../../src/core/heads.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import { type RandomCall, randomCall } from "../builders/randomCalls.ts";
import { createRandom, pick } from "../builders/randomValues.ts";
import { type CallResult, callAtOneBlock } from "../clients/callAtOneBlock.ts";
import { formatReturnData, type StandInCalls } from "../standIn/standInCalls.ts";
import type { StandInChain } from "../standIn/standInChain.ts";
import type { Service } from "./service.ts";

export interface CallTally {
  comparisons: number;
  /** Calls whose block was replaced during the request, with the result of another view. */
  repeated: number;
  /** Requests without a block, because it was replaced or is not known yet. */
  skipped: number;
  /** Messages of calls that failed only on the service. */
  readonly errors: string[];
  readonly differences: object[];
}

export interface ComparedCallsOptions {
  readonly chain: StandInChain;
  readonly execution: StandInCalls;
  readonly service: Service;
  readonly seed: number;
}

const CALLS = 8;
/** Few, so that each is sent at many blocks. */
const DIFFERENT_CALLS = 80;
const KEPT_DIFFERENCES = 20;
const LATEST_SHARE = 0.8;
const MAX_DEPTH = 200;
const FAILED = "failed";

/** Sends calls to a service again and again, and compares each result with an execution on the state of the same hash. */
export class ComparedCalls {
  readonly tally: CallTally = { comparisons: 0, repeated: 0, skipped: 0, errors: [], differences: [] };
  readonly #options: ComparedCallsOptions;
  readonly #random: () => number;
  readonly #calls: readonly RandomCall[];
  readonly #views: Heads[] = [];

  constructor(options: ComparedCallsOptions) {
    this.#options = options;
    this.#random = createRandom(options.seed);
    this.#calls = Array.from({ length: DIFFERENT_CALLS }, () => randomCall(this.#random));
    const heads = options.service.chains[0]?.upstreams.heads;
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
    const { chain, service } = this.#options;
    const number = chain.height - Math.floor(this.#random() * MAX_DEPTH);
    const tag = this.#random() < LATEST_SHARE ? "latest" : `0x${Math.max(1, number).toString(16)}`;
    const calls = Array.from({ length: CALLS }, () => pick(this.#random, this.#calls));
    const before = this.#views.length;
    const answered = await callAtOneBlock(
      service.url,
      tag,
      calls.map(({ call, overrides }) => ({ method: "eth_call", params: [call, tag, overrides] })),
    );
    if (answered === undefined) {
      this.tally.skipped++;
      return;
    }
    const { hash, results } = answered;
    const views = this.#views.slice(Math.max(0, before - 1));
    const others = views.flatMap((view) => (tag === "latest" ? view.latest : view.at(BigInt(tag)))?.hash ?? []);
    // Calls above the served head are sent by number, and each may reach another branch.
    if (!others.includes(hash)) {
      this.tally.skipped++;
      return;
    }
    for (const [index, call] of calls.entries()) {
      await this.#check(call, results[index], { hash, others });
    }
  }

  async #check(
    call: RandomCall,
    { result, error }: Partial<CallResult> = {},
    { hash, others }: { readonly hash: Hash; readonly others: readonly Hash[] },
  ): Promise<void> {
    const actual = error === undefined ? result : FAILED;
    this.tally.comparisons++;
    const expected = await this.#expected(call, hash);
    if (actual === expected) {
      return;
    }
    // The block was replaced during the request.
    for (const other of others.filter((each) => each !== hash)) {
      if ((await this.#expected(call, other)) === actual) {
        this.tally.repeated++;
        return;
      }
    }
    if (error !== undefined) {
      this.tally.errors.push(error.message);
    } else if (this.tally.differences.length < KEPT_DIFFERENCES) {
      const number = this.#options.chain.block(hash)?.number;
      this.tally.differences.push({ call, number, hash, actual, expected });
    }
  }

  async #expected({ call, overrides }: RandomCall, hash: Hash): Promise<string> {
    const { chain, execution } = this.#options;
    const block = chain.block(hash);
    if (block === undefined) {
      throw new Error(`no block has the hash ${hash}`);
    }
    // A sender without funds is an error.
    const result = await execution.call(block, call, overrides).catch(() => undefined);
    return result?.status === "success" ? formatReturnData(result) : FAILED;
  }
}
