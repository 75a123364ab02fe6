import { setTimeout as sleep } from "node:timers/promises";
import { type Address, formatQuantity, type Hash } from "../../../src/ethereum/hex.ts";
import { pick } from "../../support/builders/randomValues.ts";
import type { Batch, Watched } from "./comparePending.ts";

type Read = readonly [method: string, ...params: string[]];

export interface NodeStateOptions {
  /** The service, and the node behind it. */
  readonly ours: Batch;
  readonly node: Batch;
  readonly watched: Watched;
  /** More slots, by contract. */
  readonly slots: ReadonlyMap<Address, readonly Hash[]>;
  readonly random: () => number;
}

export interface NodeStateTally {
  comparisons: number;
  /** Batches whose block the node had replaced when it was asked. */
  replaced: number;
  errors: number;
  /** Reads whose value the node changed afterwards. */
  unstable: number;
  readonly differences: string[];
}

const READS = 12;
const LATEST_SHARE = 0.7;
/** Reads within the newest 256 blocks. */
const MAX_DEPTH = 250;
const CONFIRM_MS = 100;

interface BlockFields {
  readonly number: string;
  readonly hash: Hash;
}

/** Sends random state reads to a service, and compares each result with that of the node behind it at the same hash. */
export class NodeStateComparison {
  readonly tally: NodeStateTally = { comparisons: 0, replaced: 0, errors: 0, unstable: 0, differences: [] };
  readonly #options: NodeStateOptions;
  #height = 0;

  constructor(options: NodeStateOptions) {
    this.#options = options;
  }

  /** Sends batches until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.compareOnce();
    }
  }

  /** Sends one batch. All its calls are answered from one view, so that its first call shows the block of the others. */
  async compareOnce(): Promise<void> {
    const { ours, random } = this.#options;
    const back = Math.floor(random() * Math.min(MAX_DEPTH, this.#height));
    const tag = random() < LATEST_SHARE ? "latest" : formatQuantity(this.#height - back);
    const reads = Array.from({ length: READS }, () => this.#randomRead());
    const { outcomes } = await ours([
      ["eth_getBlockByNumber", tag, false],
      ...reads.map((read) => [...read, tag] as const),
    ]);
    const block = outcomes[0]?.result as BlockFields | null | undefined;
    if (!block) {
      this.tally.errors++;
      return;
    }
    this.#height = Math.max(this.#height, Number(block.number));
    await this.#compare(block, reads, outcomes.slice(1));
  }

  async #compare(block: BlockFields, reads: readonly Read[], results: Awaited<ReturnType<Batch>>["outcomes"]) {
    const id = { blockHash: block.hash };
    const { outcomes } = await this.#options.node([
      ...reads.map((read) => [...read, id] as const),
      ["eth_getBlockByNumber", block.number, false],
      ["eth_getBlockByNumber", "latest", false],
    ]);
    const [shown, latest] = outcomes.slice(-2).map(({ result }) => result as BlockFields | null | undefined);
    // The node may have replaced the block in the meantime. It has no state of such a block.
    if (shown?.hash !== block.hash) {
      this.tally.replaced++;
      return;
    }
    for (const [index, read] of reads.entries()) {
      const { result, error } = results[index] ?? {};
      const expected = outcomes[index]?.result;
      if (error !== undefined || expected === undefined) {
        this.tally.errors++;
        continue;
      }
      this.tally.comparisons++;
      if (result !== expected && (await this.#isRepeated(read, block, expected, latest?.hash))) {
        const shown = `${read.join(" ")} at ${Number(block.number)} ${block.hash}: ${result}, the node ${expected}`;
        this.tally.differences.push(shown);
      }
    }
  }

  /**
   * Whether the node returns the same value again when it has sealed another block. While anvil seals a block, it shows parts of it
   * at the block before.
   */
  async #isRepeated(read: Read, { hash }: BlockFields, expected: unknown, latest: Hash | undefined): Promise<boolean> {
    let outcomes: Awaited<ReturnType<Batch>>["outcomes"];
    do {
      await sleep(CONFIRM_MS);
      ({ outcomes } = await this.#options.node([
        ["eth_getBlockByNumber", "latest", false],
        [...read, { blockHash: hash }],
      ]));
    } while ((outcomes[0]?.result as BlockFields | null | undefined)?.hash === latest);
    const isRepeated = outcomes[1]?.result === expected;
    this.tally.unstable += isRepeated ? 0 : 1;
    return isRepeated;
  }

  #randomRead(): Read {
    const { watched, slots, random } = this.#options;
    const account = pick(random, watched.accounts);
    const chance = random();
    if (chance < 0.35) {
      return ["eth_getBalance", account];
    }
    if (chance < 0.5) {
      return ["eth_getTransactionCount", account];
    }
    if (chance < 0.55) {
      return ["eth_getCode", account];
    }
    if (chance < 0.85) {
      return ["eth_getStorageAt", watched.contract, pick(random, watched.slots)];
    }
    const [contract, own] = pick(random, [...slots]);
    return ["eth_getStorageAt", contract, pick(random, own)];
  }
}
