import { CODES, RpcError } from "../jsonrpc/rpcError.ts";

/** Counts the bytes of each client's subscriptions, over all its connections. */
export class ClientBytes {
  readonly #maxBytes: number;
  readonly #bytes = new Map<string, number>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds the bytes of a subscription. Throws RpcError, and adds nothing, above the limit. Returns the function that removes them. */
  take(clientId: string, bytes: number): () => void {
    if ((this.#bytes.get(clientId) ?? 0) + bytes > this.#maxBytes) {
      throw new RpcError(CODES.INVALID_REQUEST, `more than ${this.#maxBytes} bytes of subscriptions of one client`);
    }
    this.#add(clientId, bytes);
    return () => this.#add(clientId, -bytes);
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
