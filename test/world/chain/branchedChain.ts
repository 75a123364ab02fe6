import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import type { FakeBlock, FakeChain } from "../../support/fakes/fakeChain.ts";
import { CHAIN_ID } from "../state/standInChain.ts";
import { createTransaction } from "../state/standInTransactions.ts";
import { EMITTER } from "./emitter.ts";
import { answerCall } from "./nodeAnswers.ts";
import { createTruthBlock, type TruthBlock } from "./truthBlock.ts";
import { TruthState } from "./truthState.ts";

/** A block with one transaction. Its hash, roots and bloom are right, so that it passes each check of a single block. */
export interface BranchedBlock extends FakeBlock {
  readonly truth: TruthBlock;
  readonly transaction: Hash;
}

/** Occurs in each invented block, log, receipt and balance, and in no honest one. */
const FORGED = "bad0bad0";

export const HOLDER: Address = "0x00000000000000000000000000000000000a11ce";
const START_SECONDS = 1_700_000_000n;
const FINALITY = { safe: 4, finalized: 8 } as const;
const METHODS = [
  ...["eth_getBlockByNumber", "eth_getBlockByHash", "eth_getBalance", "eth_getBlockReceipts", "eth_getLogs"],
  ...["eth_getTransactionReceipt", "eth_getTransactionByHash"],
];

const sealBlock = (parent: BranchedBlock | undefined, isForged: boolean, seconds: bigint): BranchedBlock => {
  const number = (parent?.number ?? -1n) + 1n;
  const mark = isForged ? `${FORGED}${number.toString(16)}` : `1${number.toString(16)}`;
  const word: Hash = `0x${mark.padStart(64, "0")}`;
  const own = createTransaction({ sender: HOLDER, nonce: number, to: EMITTER, value: BigInt(word) });
  const transaction = parseTransaction(own.raw);
  const timestamp = START_SECONDS + number * seconds;
  const state = new TruthState(word, new Map([[HOLDER, BigInt(word)]]));
  const truth = createTruthBlock({
    ...{ parent: parent?.truth, timestamp, extraData: word, state },
    transactions: [{ transaction, sender: HOLDER, word, refund: 0n }],
  });
  const { hash, header, json } = truth;
  return { number, hash, parentHash: header.parentHash, timestamp, json, truth, transaction: transaction.hash };
};

/** One node's chain. Chains that are copies of each other have the same blocks until they grow apart. */
export class BranchedChain implements FakeChain {
  readonly chainId = Number(CHAIN_ID);
  readonly #seconds: bigint;
  readonly #known: Map<string, BranchedBlock>;
  readonly #listeners = new Set<(blocks: readonly FakeBlock[]) => void>();
  #blocks: readonly BranchedBlock[];

  constructor(height: number, secondsPerBlock = 2) {
    this.#seconds = BigInt(secondsPerBlock);
    this.#blocks = [];
    this.#known = new Map();
    this.mine(height + 1);
  }

  get blocks(): readonly BranchedBlock[] {
    return this.#blocks;
  }

  get latest(): BranchedBlock {
    const latest = this.#blocks.at(-1);
    if (latest === undefined) {
      throw new Error("a chain without blocks");
    }
    return latest;
  }

  mine(count = 1, isForged = false): void {
    const added: BranchedBlock[] = [];
    for (let index = 0; index < count; index++) {
      added.push(sealBlock(added.at(-1) ?? this.#blocks.at(-1), isForged, this.#seconds));
    }
    this.#setBlocks([...this.#blocks, ...added], added);
  }

  byHash(hash: unknown): BranchedBlock | undefined {
    return this.#known.get(String(hash));
  }

  /** Replaces the newest blocks by invented ones. */
  reorg(depth: number, count: number): void {
    this.follow(this, depth);
    this.mine(count, true);
  }

  rewind(height: number): void {
    this.follow(this, this.#blocks.length - 1 - height);
  }

  /** Returns a chain with the same blocks. */
  copy(): BranchedChain {
    const copy = new BranchedChain(0, Number(this.#seconds));
    copy.follow(this);
    return copy;
  }

  /** Takes the blocks of another chain, without the newest `lag` of them. */
  follow({ blocks }: { readonly blocks: readonly BranchedBlock[] }, lag = 0): void {
    const next = blocks.slice(0, blocks.length - lag);
    const added = next.filter((block) => !this.#known.has(block.hash));
    this.#setBlocks(next, added);
  }

  onBlocks(listener: (blocks: readonly FakeBlock[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The methods of a node that has this chain. It returns replaced blocks by hash. */
  handlers(): Record<string, (params: readonly unknown[]) => unknown> {
    const chain = {
      ...{ chainId: this.chainId, finality: FINALITY },
      block: (hash: unknown) => this.byHash(hash)?.truth,
      holding: (hash: unknown) =>
        this.#blocks.filter(({ transaction }) => transaction === hash).map(({ truth }) => truth),
    };
    return Object.fromEntries(
      METHODS.map((method) => [method, (params) => answerCall({ chain, head: this.latest.truth }, method, params)]),
    );
  }

  #setBlocks(blocks: readonly BranchedBlock[], added: readonly BranchedBlock[]): void {
    this.#blocks = blocks;
    for (const block of added) {
      this.#known.set(block.hash, block);
    }
    for (const listener of added.length === 0 ? [] : this.#listeners) {
      listener(added);
    }
  }
}

/** Returns whether a text contains anything of an invented block. */
export const isForgedText = (text: string): boolean => text.includes(FORGED);
