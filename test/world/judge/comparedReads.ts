import type { Heads } from "../../../src/core/heads.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import { createRandom } from "../../support/builders/randomValues.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import type { Service } from "../../support/servers/service.ts";
import type { StandInChain } from "../state/standInChain.ts";

/** The reads of a comparison, and their true results. */
export interface ReadKind<Read> {
  /** Reads in one batch. */
  readonly batch: number;
  /** The share of batches at `latest`. The others are at a number, down to `maxDepth` blocks below the head. */
  readonly latestShare: number;
  readonly maxDepth: number;
  /** Whether batches at a number above the served head are skipped: each of their calls may reach another branch. */
  readonly skipsAboveHead: boolean;
  /** Creates a random read for a chain of this height. */
  draw(random: () => number, height: number): Read;
  callAt(read: Read, tag: string): ChainCall;
  /** Returns the result after a block, or `FAILED`. */
  expected(read: Read, hash: Hash): unknown;
}

export const FAILED = "failed";

export interface ReadTally {
  comparisons: number;
  /** Reads that were repeated at another block, because their block was replaced during the request. */
  repeated: number;
  /** Requests without a block, because it was replaced or is not known yet. */
  skipped: number;
  /** Messages of reads that failed only on the service. */
  readonly errors: string[];
  /** The number of differences, of which some are kept. */
  wrong: number;
  readonly differences: object[];
}

interface ReadResult {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface Batch {
  readonly tag: string;
  /** The block from whose view all calls were answered. */
  readonly hash: Hash;
  /** The views that the service held during the request. */
  readonly views: readonly Heads[];
}

const KEPT_DIFFERENCES = 20;

/**
 * Sends calls at one tag in one batch, behind a request for the block itself. Returns the block and the results in the order of
 * the calls. Undefined if the block was replaced, or is not known yet.
 */
export const callAtOneBlock = async (
  url: string,
  tag: string,
  calls: readonly ChainCall[],
): Promise<{ readonly hash: Hash; readonly results: readonly ReadResult[] } | undefined> => {
  const requests = [{ method: "eth_getBlockByNumber", params: [tag, false] }, ...calls].map((request, id) => ({
    jsonrpc: "2.0",
    id,
    ...request,
  }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(requests),
  });
  const [block, ...results] = ((await response.json()) as ReadResult[]).sort((a, b) => a.id - b.id);
  const hash = (block?.result as { readonly hash?: Hash } | null | undefined)?.hash;
  return hash === undefined ? undefined : { hash, results };
};

/** Sends random reads to a service, and compares each result with the true one at the same hash. */
export class ComparedReads<Read> {
  readonly tally: ReadTally = { comparisons: 0, repeated: 0, skipped: 0, errors: [], wrong: 0, differences: [] };
  readonly #chain: StandInChain;
  readonly #url: string;
  readonly #kind: ReadKind<Read>;
  readonly #random: () => number;
  readonly #views: Heads[] = [];

  constructor(chain: StandInChain, service: Service, kind: ReadKind<Read>, seed: number) {
    this.#chain = chain;
    this.#url = service.url;
    this.#kind = kind;
    this.#random = createRandom(seed);
    service.chains[0]?.upstreams.heads.subscribe(({ heads }) => this.#views.push(heads));
  }

  /** Sends batches until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.compareOnce();
    }
  }

  /** Sends one batch, and compares its results. */
  async compareOnce(): Promise<void> {
    const { batch, latestShare, maxDepth, skipsAboveHead } = this.#kind;
    const { height } = this.#chain;
    const number = height - Math.floor(this.#random() * maxDepth);
    const tag = this.#random() < latestShare || number < 1 ? "latest" : `0x${number.toString(16)}`;
    const reads = Array.from({ length: batch }, () => this.#kind.draw(this.#random, height));
    const before = this.#views.length;
    const calls = reads.map((read) => this.#kind.callAt(read, tag));
    const answered = await callAtOneBlock(this.#url, tag, calls);
    const views = this.#views.slice(Math.max(0, before - 1));
    if (
      answered === undefined ||
      (skipsAboveHead && !views.some((view) => blockIn(view, tag)?.hash === answered.hash))
    ) {
      this.tally.skipped++;
      return;
    }
    for (const [index, read] of reads.entries()) {
      await this.#check(read, answered.results[index], { tag, hash: answered.hash, views });
    }
  }

  async #check(read: Read, { result, error }: Partial<ReadResult> = {}, batch: Batch): Promise<void> {
    const { hash } = batch;
    const actual = error === undefined ? result : FAILED;
    this.tally.comparisons++;
    const expected = await this.#kind.expected(read, hash);
    if (actual === expected) {
      return;
    }
    if (await this.#isRepeated(read, actual, batch)) {
      this.tally.repeated++;
    } else if (error !== undefined) {
      this.tally.errors.push(error.message);
    } else {
      this.tally.wrong++;
      this.#keep(read, actual, expected, batch);
    }
  }

  #keep(read: Read, actual: unknown, expected: unknown, { tag, hash }: Batch): void {
    if (this.tally.differences.length < KEPT_DIFFERENCES) {
      const isCanonical = this.#chain.values.isCanonical(hash);
      const block = `${this.#chain.block(hash)?.number} ${hash}`;
      this.tally.differences.push({ read: this.#kind.callAt(read, tag), block, isCanonical, actual, expected });
    }
  }

  /** Whether the block was replaced during the request, and the result is that of its replacement. */
  async #isRepeated(read: Read, actual: unknown, { tag, hash, views }: Batch): Promise<boolean> {
    const number = BigInt(this.#chain.block(hash)?.number ?? 0);
    if (!views.some((view) => (view.at(number)?.hash ?? hash) !== hash)) {
      return false;
    }
    for (const other of views.flatMap((view) => blockIn(view, tag)?.hash ?? [])) {
      if ((await this.#kind.expected(read, other)) === actual) {
        return true;
      }
    }
    return false;
  }
}

const blockIn = (view: Heads, tag: string): { readonly hash: Hash } | undefined =>
  tag === "latest" ? view.latest : view.at(BigInt(tag));
