import type { LogFilter } from "../ethereum/logFilter.ts";
import { type Call, paramsTextOf } from "../jsonrpc/call.ts";
import { CODES, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";
import type { SubscriptionRequest } from "./subscriptionKinds.ts";

/** Objects of a subscription in memory. Measured: 3,100 bytes, and 4,600 with one address. */
const SUBSCRIPTION_BYTES = 4_096;
/** An address or a topic: its text, and its places in the index. Measured: 510 to 700 bytes. */
const VALUE_BYTES = 704;

/** One entry for all subscriptions of a client, because there are many of them. */
interface ClientEntry {
  readonly use: MemoryUse | undefined;
  bytes: number;
  subscriptions: number;
}

const valuesOf = ({ addresses, topics }: LogFilter): number =>
  topics.reduce((sum, { length }) => sum + length, addresses.length);

const sizeInMemory = (request: SubscriptionRequest): number =>
  SUBSCRIPTION_BYTES + VALUE_BYTES * ("filter" in request && request.filter ? valuesOf(request.filter) : 0);

/** Counts the bytes of each client's subscriptions, over all its connections. */
export class ClientBytes {
  readonly #maxBytes: number;
  readonly #memory: MemoryBudget | undefined;
  readonly #clients = new Map<string, ClientEntry>();

  constructor(maxBytes: number, memory: MemoryBudget | undefined) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  /** Adds the bytes of a subscription's parameters, and its size in memory. Throws RpcError, and adds nothing, above the limit. Returns the function that removes them. */
  take(clientId: string, call: Call, request: SubscriptionRequest): () => void {
    const bytes = paramsTextOf(call).length;
    const size = sizeInMemory(request);
    const client = this.#clients.get(clientId) ?? {
      use: this.#memory?.open("subscriptions", clientId),
      bytes: 0,
      subscriptions: 0,
    };
    if (client.bytes + bytes > this.#maxBytes) {
      throw new RpcError(CODES.INVALID_REQUEST, `more than ${this.#maxBytes} bytes of subscriptions of one client`);
    }
    if (client.use?.tryAdd(size) === false) {
      throw overBudget();
    }
    client.bytes += bytes;
    client.subscriptions++;
    this.#clients.set(clientId, client);
    return () => this.#release(clientId, bytes, size);
  }

  #release(clientId: string, bytes: number, size: number): void {
    const client = this.#clients.get(clientId);
    if (client === undefined) {
      return;
    }
    client.use?.tryAdd(-size);
    client.bytes -= bytes;
    client.subscriptions--;
    if (client.subscriptions === 0) {
      this.#clients.delete(clientId);
    }
  }
}
