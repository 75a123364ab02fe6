import { overBudget } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";

/** The bytes that one log query holds: logs that are received and not sent yet. */
export class LogMemory {
  readonly #budget: MemoryBudget | undefined;
  readonly #clientId: string;
  readonly #use: MemoryUse | undefined;
  #isAdmitted = false;
  #isEnded = false;

  constructor(budget: MemoryBudget | undefined, clientId: string) {
    this.#budget = budget;
    this.#clientId = clientId;
    this.#use = budget?.open("logs", clientId);
  }

  /** Throws RpcError if the query has requested nothing from a node yet, and there is no room for its logs. */
  admit(): void {
    const error = this.#isAdmitted ? undefined : this.#budget?.refuse("logs", this.#clientId);
    if (error !== undefined) {
      throw error;
    }
    this.#isAdmitted = true;
  }

  /** Sets the number of bytes. Throws RpcError if there is no room for more. */
  set(bytes: number): void {
    if (!this.#isEnded && this.#use?.trySet(bytes) === false) {
      throw overBudget();
    }
  }

  end(): void {
    this.#isEnded = true;
    this.#use?.end();
  }
}
