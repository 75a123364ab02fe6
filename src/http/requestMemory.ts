import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";

/** The bytes that one request holds until its response is written: its body, and results that wait for each other. */
export class RequestMemory {
  readonly #budget: MemoryBudget;
  readonly #clientId: string;
  #body: MemoryUse | undefined;
  #results: MemoryUse | undefined;

  constructor(budget: MemoryBudget, clientId: string) {
    this.#budget = budget;
    this.#clientId = clientId;
  }

  get hasBody(): boolean {
    return this.#body !== undefined;
  }

  /** Counts bytes of the body. Returns false if there is no room. */
  holdBody(bytes: number): boolean {
    this.#body ??= this.#budget.open("requests", this.#clientId);
    return this.#body.tryAdd(bytes);
  }

  /** Counts a result of a node. Returns false if there is no room. */
  hold(bytes: number): boolean {
    this.#results ??= this.#budget.open("responses", this.#clientId);
    return this.#results.tryAdd(bytes);
  }

  release(): void {
    this.#body?.end();
    this.#results?.end();
  }
}
