import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { type MemoryBudget, overBudget } from "../limits/memoryBudget.ts";

/** Objects of a subscription in memory. */
const SUBSCRIPTION_BYTES = 2_048;
/** A parsed filter is larger than its text. */
const PARSED_FACTOR = 2;

/** Counts the bytes of each client's subscriptions, over all its connections. */
export class ClientBytes {
  readonly #maxBytes: number;
  readonly #memory: MemoryBudget | undefined;
  readonly #bytes = new Map<string, number>();

  constructor(maxBytes: number, memory: MemoryBudget | undefined) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  /** Adds the bytes of a subscription. Throws RpcError, and adds nothing, above the limit. Returns the function that removes them. */
  take(clientId: string, bytes: number): () => void {
    if ((this.#bytes.get(clientId) ?? 0) + bytes > this.#maxBytes) {
      throw new RpcError(CODES.INVALID_REQUEST, `more than ${this.#maxBytes} bytes of subscriptions of one client`);
    }
    const use = this.#memory?.open("subscriptions", clientId);
    if (use?.tryAdd(SUBSCRIPTION_BYTES + PARSED_FACTOR * bytes) === false) {
      throw overBudget();
    }
    this.#add(clientId, bytes);
    return () => {
      use?.end();
      this.#add(clientId, -bytes);
    };
  }

  #add(clientId: string, by: number): void {
    const bytes = (this.#bytes.get(clientId) ?? 0) + by;
    if (bytes > 0) {
      this.#bytes.set(clientId, bytes);
    } else {
      this.#bytes.delete(clientId);
    }
  }
}
