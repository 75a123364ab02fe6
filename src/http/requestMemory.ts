import type { ResultMemory } from "../jsonrpc/response.ts";
import { type MemoryBudget, type MemoryUse, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";

/** A body is held as bytes and as text. */
const BODY_COPIES = 2;
/** Objects of a call that waits in its batch. Measured: 560 bytes. */
const CALL_BYTES = 640;
/** Objects of a call in flight, down to the request to the node. Measured: 7,000 bytes. */
const RUNNING_CALL_BYTES = 7 * 1024;

/** The bytes that one request holds until its response is written: its body, its calls, and results that wait for each other. */
export class RequestMemory implements ResultMemory {
  readonly #budget: MemoryBudget;
  readonly #clientId: string;
  /** Bytes of the body that are announced, and have not arrived. */
  #announcedBytes = 0;
  #body: MemoryUse | undefined;
  #calls: MemoryUse | undefined;
  #results: MemoryUse | undefined;
  /** The results above UNCOUNTED_BYTES. The node's answer counts, and the batch that it belongs to counts it again. */
  #large: Set<Uint8Array> | undefined;
  #largeBytes = 0;
  #smallBytes = 0;
  /** The part of the small results' bytes that is counted. Each result alone would cost more to count than to hold. */
  #countedBytes = 0;
  #response: MemoryUse | undefined;
  #isReleased = false;

  constructor(budget: MemoryBudget, clientId: string) {
    this.#budget = budget;
    this.#clientId = clientId;
  }

  get hasBody(): boolean {
    return this.#body !== undefined;
  }

  /** Announces a body by its length. Returns false if there will be no room. */
  announceBody(bytes: number): boolean {
    const heldBytes = BODY_COPIES * bytes;
    const hasRoom = this.#budget.tryAnnounce("requests", this.#clientId, heldBytes);
    this.#announcedBytes = hasRoom ? heldBytes : 0;
    return hasRoom;
  }

  /** Counts bytes of the body. Returns false if there is no room. A request that has ended holds nothing, as in `holdCalls`. */
  holdBody(bytes: number): boolean {
    if (this.#isReleased) {
      return true;
    }
    const heldBytes = BODY_COPIES * bytes;
    this.#endAnnounced(Math.min(heldBytes, this.#announcedBytes));
    this.#body ??= this.#budget.open("requests", this.#clientId);
    return this.#body.tryAdd(heldBytes);
  }

  holdCalls(calls: number, running: number): boolean {
    if (this.#isReleased) {
      return true;
    }
    this.#calls ??= this.#budget.open("requests", this.#clientId);
    return this.#calls.tryAdd(calls * CALL_BYTES + running * RUNNING_CALL_BYTES);
  }

  hold(result: Uint8Array): boolean {
    const { length } = result;
    if (length <= UNCOUNTED_BYTES) {
      this.#smallBytes += length;
      return this.#smallBytes <= this.#countedBytes + UNCOUNTED_BYTES || this.#countSmall(length);
    }
    this.#large ??= new Set();
    if (this.#large.has(result)) {
      return true;
    }
    this.#large.add(result);
    this.#largeBytes += length;
    if (this.#count()) {
      return true;
    }
    this.drop(result);
    return false;
  }

  drop(result: Uint8Array): void {
    const { length } = result;
    if (length <= UNCOUNTED_BYTES) {
      this.#smallBytes -= length;
      if (this.#smallBytes < this.#countedBytes) {
        this.#countedBytes = this.#smallBytes;
        this.#count();
      }
    } else if (this.#large?.delete(result) === true) {
      this.#largeBytes -= length;
      this.#count();
    }
  }

  holdResponse(bytes: number): boolean {
    this.#response ??= this.#budget.open("responses", this.#clientId);
    return this.#isReleased || this.#response.tryAdd(bytes);
  }

  /** Ends the request. Results that arrive later are not counted: other clients wait for them, or nobody does. */
  release(): void {
    this.#isReleased = true;
    this.#endAnnounced(this.#announcedBytes);
    this.#body?.end();
    this.#calls?.end();
    this.#results?.end();
    this.#response?.end();
  }

  #countSmall(length: number): boolean {
    const countedBytes = this.#countedBytes;
    this.#countedBytes = this.#smallBytes;
    if (this.#count()) {
      return true;
    }
    this.#smallBytes -= length;
    this.#countedBytes = countedBytes;
    return false;
  }

  /** Returns false, and counts no more than before, if there is no room. */
  #count(): boolean {
    if (this.#isReleased) {
      return true;
    }
    this.#results ??= this.#budget.open("responses", this.#clientId);
    return this.#results.trySet(this.#largeBytes + this.#countedBytes);
  }

  #endAnnounced(bytes: number): void {
    if (bytes > 0) {
      this.#announcedBytes -= bytes;
      this.#budget.endAnnounced(this.#clientId, bytes);
    }
  }
}
