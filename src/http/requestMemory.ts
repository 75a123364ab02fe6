import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";

/** The bytes that one request holds until its response is written: its body, and results that wait for each other. */
export class RequestMemory {
  readonly #budget: MemoryBudget;
  readonly #clientId: string;
  /** Bytes of the body that are announced, and have not arrived. */
  #announcedBytes = 0;
  #body: MemoryUse | undefined;
  #results: MemoryUse | undefined;

  constructor(budget: MemoryBudget, clientId: string) {
    this.#budget = budget;
    this.#clientId = clientId;
  }

  get hasBody(): boolean {
    return this.#body !== undefined;
  }

  /** Announces a body by its length. Returns false if there will be no room. */
  announceBody(bytes: number): boolean {
    const hasRoom = this.#budget.tryAnnounce("requests", this.#clientId, bytes);
    this.#announcedBytes = hasRoom ? bytes : 0;
    return hasRoom;
  }

  /** Counts bytes of the body. Returns false if there is no room. */
  holdBody(bytes: number): boolean {
    this.#endAnnounced(Math.min(bytes, this.#announcedBytes));
    this.#body ??= this.#budget.open("requests", this.#clientId);
    return this.#body.tryAdd(bytes);
  }

  /** Counts a result of a node. Returns false if there is no room. */
  hold(bytes: number): boolean {
    this.#results ??= this.#budget.open("responses", this.#clientId);
    return this.#results.tryAdd(bytes);
  }

  release(): void {
    this.#endAnnounced(this.#announcedBytes);
    this.#body?.end();
    this.#results?.end();
  }

  #endAnnounced(bytes: number): void {
    if (bytes > 0) {
      this.#announcedBytes -= bytes;
      this.#budget.endAnnounced(this.#clientId, bytes);
    }
  }
}
