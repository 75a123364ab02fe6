import { LRUCache } from "lru-cache";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";

type KnownAnswer = Pick<RpcResponse, "block" | "proof"> & { readonly body: Uint8Array };

const MAX_BYTES = 8 * 1024 ** 2;
const ENTRY_BYTES = 300;
const HIT: CacheStatus = Object.freeze({ hit: "state" });

/** Answers that the main process gave for one block each. The least used ones are evicted. */
export class KnownBodies {
  readonly #bodies = new LRUCache<string, RpcResponse & KnownAnswer>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body }, name) => ENTRY_BYTES + name.length + body.length,
  });
  #generation = 0;

  get(name: string): RpcResponse | undefined {
    return this.#bodies.get(name);
  }

  /** Returns the function that adds the answer to a request that begins now. An answer of before `clear` is not added. */
  beginAdd(name: string): (answer: KnownAnswer) => RpcResponse {
    const generation = this.#generation;
    return (answer) => {
      const response = { ...answer, status: HIT };
      if (generation === this.#generation) {
        this.#bodies.set(name, response);
      }
      return response;
    };
  }

  clear(): void {
    this.#generation++;
    this.#bodies.clear();
  }
}
