import type { ServerResponse } from "node:http";
import { type MemoryBudget, type MemoryUse, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";

/** A response without room in the budget must be read within this time. */
const GRACE_MS = 1_000;

interface Pin {
  readonly use: MemoryUse;
  responses: number;
}

/** The large buffers that responses wait to send. A buffer of several responses, such as a cached one, counts once. */
class PinnedBuffers {
  readonly #memory: MemoryBudget;
  readonly #pins = new Map<ArrayBufferLike, Pin>();

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** Returns false if there is no room. The buffer counts for the client that pins it first. */
  add({ buffer, length }: Uint8Array, clientId: string): boolean {
    const pin = this.#pins.get(buffer);
    if (pin !== undefined) {
      pin.responses++;
      return true;
    }
    const use = this.#memory.open("responses", clientId);
    const hasRoom = use.tryAdd(length);
    this.#pins.set(buffer, { use, responses: 1 });
    return hasRoom;
  }

  remove({ buffer }: Uint8Array): void {
    const pin = this.#pins.get(buffer);
    if (pin === undefined) {
      return;
    }
    pin.responses--;
    if (pin.responses === 0) {
      pin.use.end();
      this.#pins.delete(buffer);
    }
  }
}

export interface WaitingResponsesOptions {
  readonly memory: MemoryBudget;
  /** A connection whose client reads nothing for this time is closed. */
  readonly writeTimeoutMs: number;
}

/** The responses whose bytes wait for slow readers. */
export class WaitingResponses {
  readonly #options: WaitingResponsesOptions;
  readonly #buffers: PinnedBuffers;

  constructor(options: WaitingResponsesOptions) {
    this.#options = options;
    this.#buffers = new PinnedBuffers(options.memory);
  }

  /** Counts a response that is written, but not sent yet. */
  add(response: ServerResponse, chunks: readonly Uint8Array[], clientId: string): void {
    const { memory, writeTimeoutMs } = this.#options;
    const large = chunks.filter(({ length }) => length > UNCOUNTED_BYTES);
    const largeBytes = large.reduce((sum, { length }) => sum + length, 0);
    const rest = memory.open("responses", clientId);
    let hasRoom = rest.tryAdd(Math.max(0, response.writableLength - largeBytes));
    for (const chunk of large) {
      hasRoom = this.#buffers.add(chunk, clientId) && hasRoom;
    }
    // Node closes the connection if no byte was read in this time. The next request has the usual timeout again.
    // A response behind another one on its connection has no socket of its own yet.
    response.req.socket.setTimeout(writeTimeoutMs);
    const timer = hasRoom ? undefined : setTimeout(() => response.destroy(), GRACE_MS);
    response.once("close", () => {
      clearTimeout(timer);
      rest.end();
      for (const chunk of large) {
        this.#buffers.remove(chunk);
      }
    });
  }
}
