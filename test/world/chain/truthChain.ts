import { EventEmitter } from "node:events";
import { type Hash, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import type { Flashblock } from "../../devnet/flashblock.ts";
import { between, ChainRecord, type Recorded } from "./chainRecord.ts";
import { LagBound } from "./lagBound.ts";
import { createGenesis, OpenBlock, type TruthSeed } from "./openBlock.ts";
import type { TruthBlock } from "./truthBlock.ts";

const FIRST_BLOCKS = 150;

/** The devnet's own record. Its blocks call one contract, and a feed announces them. */
export class TruthChain extends ChainRecord<TruthBlock> {
  readonly lagBound: LagBound;
  readonly feed = new EventEmitter<{ message: [Flashblock] }>();
  readonly #source: TruthSeed;
  readonly #publishedMs = new Map<Hash, number>();
  readonly #firstSeenMs = new Map<string, number>();
  readonly #prefixes: Recorded<TruthBlock>[] = [];
  readonly #newest: Hash[] = [];
  #open: OpenBlock | undefined;
  /** Blocks that no feed announced give back gas. */
  givesBack = false;

  private constructor(source: TruthSeed, genesis: TruthBlock, maxLagMs: number | undefined) {
    super(source.chainId);
    this.lagBound = new LagBound(maxLagMs);
    this.#source = source;
    this.#publish(genesis);
  }

  /** Creates a chain with blocks, each with one transaction. `maxLagMs` is the lag that is allowed during a fault. */
  static async create(
    chainId: number,
    seed: number,
    maxLagMs?: number,
    genesisSeconds = BigInt(Math.floor(Date.now() / 1_000) - FIRST_BLOCKS),
  ): Promise<TruthChain> {
    const source = { chainId, seed, count: 0 };
    const chain = new TruthChain(source, createGenesis(source, genesisSeconds), maxLagMs);
    for (let count = 0; count < FIRST_BLOCKS; count++) {
      await chain.mine(1);
    }
    return chain;
  }

  get transactions(): readonly Hash[] {
    return this.#newest;
  }

  /** Returns the blocks of all branches with these numbers. */
  blocksBetween(from: number, to: number): readonly TruthBlock[] {
    return [...this.blocks.values()].filter(({ number }) => number >= from && number <= to);
  }

  /** Returns the time at which a block first was a head. */
  publishedMs(block: TruthBlock): number {
    return this.#publishedMs.get(block.hash) ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the time at which the chain first had a head of this number. */
  publishedMsOf(number: number): number {
    return this.heads.find(({ block }) => block.number >= number)?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the time at which another head replaced this one. */
  replacedMs(block: TruthBlock): number {
    const at = this.heads.findLastIndex((recorded) => recorded.block === block);
    return this.heads[at + 1]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the time at which a transaction was first in a block or in the feed. */
  firstSeenMs(transaction: string): number {
    return this.#firstSeenMs.get(transaction) ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the blocks of the feed that were visible between two times, newest first. */
  prefixesBetween(fromMs: number, toMs: number): readonly TruthBlock[] {
    return between(this.#prefixes, fromMs, toMs);
  }

  /** Sends the next message of the open block. */
  async step(transactions: number): Promise<void> {
    this.#open ??= new OpenBlock(this.head, this.#source);
    const block = await this.#open.grow(transactions);
    this.#index(block);
    this.#prefixes.push({ atMs: performance.now(), block });
    this.feed.emit("message", this.#open.message(block, transactions));
  }

  /** Seals the open block as the feed announced it. */
  async seal(): Promise<void> {
    const open = this.#open ?? new OpenBlock(this.head, this.#source);
    this.#open = undefined;
    this.#publish(await open.grow(0));
  }

  async mine(transactions: number): Promise<void> {
    const open = new OpenBlock(this.head, this.#source, this.givesBack);
    this.#publish(await open.grow(transactions));
  }

  /** Creates a block of a branch that nodes can follow. It is no head of the chain. */
  async extend(parent: TruthBlock, transactions: number): Promise<TruthBlock> {
    const block = await new OpenBlock(parent, this.#source).grow(transactions);
    this.blocks.set(block.hash, block);
    this.#addNewest(block);
    this.#index(block);
    return block;
  }

  /** Replaces the newest blocks by others. The open block is lost. */
  async reorg(depth: number, blocks: number): Promise<void> {
    this.#open = undefined;
    let parent = this.head;
    for (let count = 0; count < depth; count++) {
      parent = parent.parent ?? parent;
    }
    for (let count = 0; count < blocks; count++) {
      parent = await new OpenBlock(parent, this.#source).grow(1 + (count % 2));
      this.#index(parent);
    }
    this.#publish(parent);
  }

  #index(block: TruthBlock): void {
    const atMs = performance.now();
    for (const hash of block.hashes) {
      if (!this.#firstSeenMs.has(hash)) {
        this.#firstSeenMs.set(hash, atMs);
      }
    }
    this.holdTransactions(block);
  }

  #addNewest({ hashes }: TruthBlock): void {
    this.#newest.push(...hashes);
    this.#newest.splice(0, this.#newest.length - MAX_NEWEST);
  }

  /** A new branch's blocks become heads, the oldest first: nodes on two branches agree on the newest block that both have. */
  #publish(block: TruthBlock): void {
    const atMs = performance.now();
    const added: TruthBlock[] = [];
    for (let each: TruthBlock | undefined = block; each && !this.blocks.has(each.hash); each = each.parent) {
      added.unshift(each);
    }
    for (const each of added) {
      this.blocks.set(each.hash, each);
      this.#publishedMs.set(each.hash, atMs);
      this.#addNewest(each);
      this.heads.push({ atMs, block: each });
    }
    if (block.header.parentHash !== ZERO_HASH) {
      this.#index(block);
    }
    this.announce(block);
  }
}

const MAX_NEWEST = 60;
