import type { Hash } from "../../../src/ethereum/hex.ts";
import type { StandInBlock, StandInChain } from "./standInChain.ts";
import type { StateValuesReader } from "./stateKeys.ts";

/** What a node shows of a chain. */
export type ShownChain = Pick<
  StandInChain,
  "fork" | "height" | "at" | "block" | "stateAt" | "proofAt" | "witnessOf" | "onBlock"
>;

/** A chain as a node shows it that stays on a branch, although the chain has left it. */
export class BranchView implements ShownChain {
  readonly #chain: StandInChain;
  #head: StandInBlock | undefined;

  constructor(chain: StandInChain) {
    this.#chain = chain;
  }

  /** Stays at the newest block of the chain. */
  stay(): void {
    this.#head = this.#chain.latest;
  }

  /** Shows the canonical blocks again. */
  follow(): void {
    this.#head = undefined;
  }

  get fork(): StandInChain["fork"] {
    return this.#chain.fork;
  }

  get height(): number {
    return this.#head?.number ?? this.#chain.height;
  }

  at(number: number): StandInBlock | undefined {
    let block = this.#head;
    while (block !== undefined && block.number > number && this.#chain.at(block.number) !== block) {
      block = this.#chain.block(block.parentHash);
    }
    const isOwn = block !== undefined && block.number <= number;
    return isOwn ? (block?.number === number ? block : undefined) : this.#chain.at(number);
  }

  block(hash: unknown): StandInBlock | undefined {
    return this.#chain.block(hash);
  }

  stateAt(hash: Hash): StateValuesReader {
    return this.#chain.stateAt(hash);
  }

  proofAt(...read: Parameters<StandInChain["proofAt"]>): ReturnType<StandInChain["proofAt"]> {
    return this.#chain.proofAt(...read);
  }

  witnessOf(block: StandInBlock): ReturnType<StandInChain["witnessOf"]> {
    return this.#chain.witnessOf(block);
  }

  onBlock(listener: (block: StandInBlock) => void): () => void {
    return this.#chain.onBlock(listener);
  }
}
