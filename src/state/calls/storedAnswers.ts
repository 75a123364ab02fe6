import type { BlockId } from "../../core/heads.ts";
import type { CallResult } from "./callResult.ts";
import type { CallMethod } from "./callRun.ts";
import type { StoredDefaults } from "./nodeDefaults.ts";

/** The answer to a call, as it outlives the process or the chain that learned it. */
export interface StoredAnswer {
  /** The canonical text of method and parameters. */
  readonly key: string;
  readonly method: CallMethod;
  /** The block is a readable one, and not after the block for which the answer is stored. */
  readonly answer: Omit<CallResult, "generation">;
  /** Whether no block since wrote what the call reads. Otherwise the call can be executed again. */
  readonly isValid: boolean;
}

/** Answers that can be stored. */
export interface AnswerSource {
  readonly defaults: readonly StoredDefaults[];
  /** Lists the answers at a readable block, the most used first. */
  answersAt(block: BlockId): Iterator<StoredAnswer | undefined>;
}

/** What receives stored answers. */
export interface AnswerTarget {
  addDefaults(stored: StoredDefaults): void;
  /** `block`: the one at which values are restored. It is not before the block of the answer. */
  addAnswer(stored: StoredAnswer, block: BlockId): void;
}

/** Holds stored answers until there is a table for them. */
export class HeldAnswers implements AnswerTarget {
  readonly #defaults: StoredDefaults[] = [];
  readonly #answers: { readonly stored: StoredAnswer; readonly block: BlockId }[] = [];

  addDefaults(stored: StoredDefaults): void {
    this.#defaults.push(stored);
  }

  addAnswer(stored: StoredAnswer, block: BlockId): void {
    this.#answers.push({ stored, block });
  }

  /** Takes all answers at a block, one a step. */
  *take({ defaults, answersAt }: AnswerSource, block: BlockId): Generator<void, void> {
    this.#defaults.push(...defaults);
    const listed = answersAt(block);
    for (let next = listed.next(); next.done !== true; next = listed.next()) {
      if (next.value !== undefined) {
        this.addAnswer(next.value, block);
      }
      yield;
    }
  }

  clear(): void {
    this.#defaults.length = 0;
    this.#answers.length = 0;
  }

  /** Gives all answers to a target, one a step. The least used ones come first, because a full table drops those. */
  *moveTo(target: AnswerTarget): Generator<void, void> {
    for (const stored of this.#defaults.splice(0)) {
      target.addDefaults(stored);
    }
    for (let last = this.#answers.pop(); last !== undefined; last = this.#answers.pop()) {
      target.addAnswer(last.stored, last.block);
      yield;
    }
  }
}
