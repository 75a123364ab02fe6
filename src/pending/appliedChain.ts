import type { BlockId } from "../core/heads.ts";
import type { Flashblock } from "../feed/message.ts";
import { applyFlashblock, type ExtraBlockFields, type PendingChain } from "./applyFlashblock.ts";
import type { Execution } from "./execution.ts";

/** A message whose execution may still run. */
export interface ExecutingMessage {
  readonly message: Flashblock;
  readonly execution: Execution | undefined;
}

/** The pending chain of a list of messages. It applies only messages that it has not applied yet. */
export class AppliedChain {
  #chain: PendingChain;
  /** The number of messages that are in the chain. */
  #count = 0;

  constructor(base: BlockId) {
    this.#chain = { base, extraBlockFields: {}, blocks: [] };
  }

  get count(): number {
    return this.#count;
  }

  rebase(base: BlockId, extraBlockFields: ExtraBlockFields): void {
    this.#chain = { base, extraBlockFields, blocks: [] };
    this.#count = 0;
  }

  /** Removes all messages, because one that is in the chain has changed. */
  restart(): void {
    this.#chain = { ...this.#chain, blocks: [] };
    this.#count = 0;
  }

  /** Applies the messages up to the first without an execution. */
  extend(messages: readonly ExecutingMessage[]): PendingChain {
    for (const { message, execution } of messages.slice(this.#count)) {
      if (!execution) {
        break;
      }
      this.#chain = applyFlashblock(this.#chain, message, execution);
      this.#count++;
    }
    return this.#chain;
  }
}
