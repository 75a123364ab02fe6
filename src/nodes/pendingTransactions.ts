import { LRUCache } from "lru-cache";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { NodeSubscription } from "./nodeSubscription.ts";

export interface PendingTransactionsOptions {
  /** Nodes that have a WebSocket. */
  readonly nodes: readonly { readonly url: string; readonly headers: Readonly<Record<string, string>> }[];
  readonly signal: AbortSignal;
}

type Listener = (body: Uint8Array) => void;

const ACCEPT_TIMEOUT_MS = 5_000;
const MAX_HASHES = 50_000;

const hashOf = (result: unknown): string =>
  String(typeof result === "object" && result !== null && "hash" in result ? result.hash : result);

const notOffered = (): RpcError =>
  new RpcError(CODES.METHOD_NOT_FOUND, "no node of this chain offers newPendingTransactions");

/** One kind of subscription (hashes or full transactions) on all nodes. */
class Channel {
  readonly listeners = new Set<Listener>();
  /** Resolves when the first node has accepted the subscription. */
  readonly accepted: Promise<void>;
  readonly #ending = new AbortController();
  /** Hashes that were sent: several nodes report one transaction. */
  readonly #sent = new LRUCache<string, true>({ max: MAX_HASHES });

  constructor({ nodes, signal }: PendingTransactionsOptions, isFull: boolean) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(notOffered()), ACCEPT_TIMEOUT_MS).unref();
    this.accepted = promise.finally(() => clearTimeout(timer));
    const rejectedBy = new Set<object>();
    for (const node of nodes) {
      const subscription = new NodeSubscription({
        ...node,
        params: isFull ? ["newPendingTransactions", true] : ["newPendingTransactions"],
        signal: AbortSignal.any([signal, this.#ending.signal]),
        onAccepted: () => {
          subscription.resetBackoff();
          resolve();
        },
        onRejected: () => {
          rejectedBy.add(node);
          if (rejectedBy.size === nodes.length) {
            reject(notOffered());
          }
        },
        onResult: (result) => this.#send(result),
      });
    }
  }

  close(): void {
    this.#ending.abort();
  }

  #send(result: unknown): void {
    const hash = hashOf(result);
    if (this.#sent.has(hash)) {
      return;
    }
    this.#sent.set(hash, true);
    const body = Buffer.from(JSON.stringify(result));
    for (const listener of this.listeners) {
      listener(body);
    }
  }
}

/**
 * The transaction pools of all nodes, for any number of listeners.
 * Each node gets one subscription, and none while there is no listener.
 */
export class PendingTransactions {
  readonly #options: PendingTransactionsOptions;
  /** By `isFull`. */
  readonly #channels = new Map<boolean, Channel>();

  constructor(options: PendingTransactionsOptions) {
    this.#options = options;
  }

  /**
   * Sends UTF-8 JSON texts to the listener: hashes, or full transactions. Returns a function that ends it. Rejects if no node
   * offers the subscription.
   */
  async subscribe(isFull: boolean, listener: Listener): Promise<() => void> {
    if (this.#options.nodes.length === 0) {
      throw notOffered();
    }
    const channel = this.#channels.get(isFull) ?? new Channel(this.#options, isFull);
    this.#channels.set(isFull, channel);
    try {
      await channel.accepted;
    } catch (error) {
      this.#close(isFull, channel);
      throw error;
    }
    channel.listeners.add(listener);
    return () => {
      channel.listeners.delete(listener);
      if (channel.listeners.size === 0) {
        this.#close(isFull, channel);
      }
    };
  }

  #close(isFull: boolean, channel: Channel): void {
    channel.close();
    if (this.#channels.get(isFull) === channel) {
      this.#channels.delete(isFull);
    }
  }
}
