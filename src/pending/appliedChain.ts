import type { BlockId } from "../core/heads.ts";
import type { Flashblock } from "../feed/flashblock.ts";
import { type AppliedExecution, applyFlashblock, type ExtraBlockFields, type PendingChain } from "./applyFlashblock.ts";

/** A message as it is shown. While a copy of it executes that has replaced it, the message is still the old one. */
export interface MessageForm {
  readonly message: Flashblock;
  readonly execution: AppliedExecution;
}

/** A message whose execution may still run. */
interface ExecutingMessage {
  readonly form: MessageForm | undefined;
}

/** The pending chain of a list of messages, after each of them. It applies only messages that it has not applied yet. */
export class AppliedChain {
  /** `#chains[n]` is the chain after n messages. */
  #chains: PendingChain[];

  constructor(base: BlockId) {
    this.#chains = [{ base, extraBlockFields: {}, blocks: [] }];
  }

  /** The number of messages that are in the chain. */
  get count(): number {
    return this.#chains.length - 1;
  }

  rebase(base: BlockId, extraBlockFields: ExtraBlockFields): void {
    this.#chains = [{ base, extraBlockFields, blocks: [] }];
  }

  /** Removes all messages but the first `count`, because the next one has changed. */
  cut(count: number): void {
    this.#chains = this.#chains.slice(0, count + 1);
  }

  /** Applies the messages up to the first without a form. */
  extend(messages: readonly ExecutingMessage[]): PendingChain {
    for (const { form } of messages.slice(this.count)) {
      if (!form) {
        break;
      }
      this.#chains.push(applyFlashblock(this.at(this.count), form.message, form.execution));
    }
    return this.at(this.count);
  }

  /** Returns the chain after the first `count` messages, which are applied. */
  at(count: number): PendingChain {
    const chain = this.#chains[count];
    if (chain === undefined) {
      throw new RangeError(`${count} messages are not applied`);
    }
    return chain;
  }

  /** Returns the chains after each of the first `count` messages. */
  prefixes(count: number): readonly PendingChain[] {
    return this.#chains.slice(1, count + 1);
  }
}
