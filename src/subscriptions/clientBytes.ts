import { CODES, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";

/** Objects of a subscription in memory. */
const SUBSCRIPTION_BYTES = 2_048;
/** A parsed filter is larger than its text. */
const PARSED_FACTOR = 2;

/** One entry for all subscriptions of a client, because there are many of them. */
interface ClientEntry {
  readonly use: MemoryUse | undefined;
  bytes: number;
  subscriptions: number;
}

const sizeInMemory = (bytes: number): number => SUBSCRIPTION_BYTES + PARSED_FACTOR * bytes;

/** Counts the bytes of each client's subscriptions, over all its connections. */
export class ClientBytes {
  readonly #maxBytes: number;
  readonly #memory: MemoryBudget | undefined;
  readonly #clients = new Map<string, ClientEntry>();

  constructor(maxBytes: number, memory: MemoryBudget | undefined) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  /** Adds the bytes of a subscription. Throws RpcError, and adds nothing, above the limit. Returns the function that removes them. */
  take(clientId: string, bytes: number): () => void {
    const client = this.#clients.get(clientId) ?? {
      use: this.#memory?.open("subscriptions", clientId),
      bytes: 0,
      subscriptions: 0,
    };
    if (client.bytes + bytes > this.#maxBytes) {
      throw new RpcError(CODES.INVALID_REQUEST, `more than ${this.#maxBytes} bytes of subscriptions of one client`);
    }
    if (client.use?.tryAdd(sizeInMemory(bytes)) === false) {
      throw overBudget();
    }
    client.bytes += bytes;
    client.subscriptions++;
    this.#clients.set(clientId, client);
    return () => this.#release(clientId, bytes);
  }

  #release(clientId: string, bytes: number): void {
    const client = this.#clients.get(clientId);
    if (client === undefined) {
      return;
    }
    client.use?.tryAdd(-sizeInMemory(bytes));
    client.bytes -= bytes;
    client.subscriptions--;
    if (client.subscriptions === 0) {
      this.#clients.delete(clientId);
    }
  }
}
