import { LRUCache } from "lru-cache";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { followSubscription } from "./nodeSubscription.ts";

export interface PendingTransactionsOptions {
  /** Nodes that have a WebSocket. */
  readonly nodes: readonly { readonly url: string; readonly headers: Readonly<Record<string, string>> }[];
  readonly signal: AbortSignal;
}

/**
 * The transaction pools of all nodes, for any number of listeners.
 * Each node gets one subscription, and none while there is no listener.
 */
export interface PendingTransactions {
  /** Sends UTF-8 JSON texts to the listener: hashes, or full transactions. Rejects if no node offers the subscription. */
  subscribe(isFull: boolean, listener: (body: Uint8Array) => void): Promise<() => void>;
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
    const rejectedBy = new Set<number>();
    for (const [index, node] of nodes.entries()) {
      const subscription = followSubscription({
        ...node,
        params: isFull ? ["newPendingTransactions", true] : ["newPendingTransactions"],
        signal: AbortSignal.any([signal, this.#ending.signal]),
        onAccepted: () => {
          subscription.resetBackoff();
          resolve();
        },
        onRejected: () => {
          rejectedBy.add(index);
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

export const createPendingTransactions = (options: PendingTransactionsOptions): PendingTransactions => {
  /** By `isFull`. */
  const channels = new Map<boolean, Channel>();

  const close = (isFull: boolean, channel: Channel): void => {
    channel.close();
    if (channels.get(isFull) === channel) {
      channels.delete(isFull);
    }
  };

  return {
    subscribe: async (isFull, listener) => {
      if (options.nodes.length === 0) {
        throw notOffered();
      }
      const channel = channels.get(isFull) ?? new Channel(options, isFull);
      channels.set(isFull, channel);
      try {
        await channel.accepted;
      } catch (error) {
        close(isFull, channel);
        throw error;
      }
      channel.listeners.add(listener);
      return () => {
        channel.listeners.delete(listener);
        if (channel.listeners.size === 0) {
          close(isFull, channel);
        }
      };
    },
  };
};
