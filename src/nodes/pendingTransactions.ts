import { LRUCache } from "lru-cache";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { followSubscription } from "./nodeSubscription.ts";

export interface PendingTransactionsOptions {
  /** Those that have a WebSocket. */
  readonly nodes: readonly { readonly url: string; readonly headers: Readonly<Record<string, string>> }[];
  readonly signal: AbortSignal;
}

/** The nodes' transaction pools, for any number of listeners: one subscription a node, and none while nobody listens. */
export interface PendingTransactions {
  /** UTF-8 JSON texts: hashes, or whole transactions. Rejects where no node offers it. */
  subscribe(isFull: boolean, listener: (body: Uint8Array) => void): Promise<() => void>;
}

interface Channel {
  readonly listeners: Set<(body: Uint8Array) => void>;
  readonly taken: Promise<void>;
  readonly ending: AbortController;
}

const TAKE_TIMEOUT_MS = 5_000;
const REMEMBERED_HASHES = 50_000;

const hashOf = (result: unknown): string =>
  String(typeof result === "object" && result !== null && "hash" in result ? result.hash : result);

const notOffered = (): RpcError =>
  new RpcError(CODES.METHOD_NOT_FOUND, "no node of this chain offers newPendingTransactions");

export const createPendingTransactions = ({ nodes, signal }: PendingTransactionsOptions): PendingTransactions => {
  const channels = new Map<boolean, Channel>();

  const open = (isFull: boolean): Channel => {
    const listeners = new Set<(body: Uint8Array) => void>();
    const ending = new AbortController();
    const taken = Promise.withResolvers<void>();
    const seen = new LRUCache<string, true>({ max: REMEMBERED_HASHES });
    const refused = new Set<number>();

    const follow = (node: PendingTransactionsOptions["nodes"][number], index: number): void => {
      const subscription = followSubscription({
        ...node,
        params: isFull ? ["newPendingTransactions", true] : ["newPendingTransactions"],
        signal: AbortSignal.any([signal, ending.signal]),
        onTaken: () => {
          subscription.restored();
          taken.resolve();
        },
        onRefused: () => {
          refused.add(index);
          if (refused.size === nodes.length) taken.reject(notOffered());
        },
        onResult: (result) => {
          // Several nodes tell of one transaction.
          const hash = hashOf(result);
          if (seen.has(hash)) return;
          seen.set(hash, true);
          const body = Buffer.from(JSON.stringify(result));
          for (const listener of listeners) listener(body);
        },
      });
    };
    const timer = setTimeout(() => taken.reject(notOffered()), TAKE_TIMEOUT_MS).unref();
    for (const [index, node] of nodes.entries()) follow(node, index);
    return { listeners, ending, taken: taken.promise.finally(() => clearTimeout(timer)) };
  };

  const close = (isFull: boolean, channel: Channel): void => {
    channel.ending.abort();
    if (channels.get(isFull) === channel) channels.delete(isFull);
  };

  return {
    subscribe: async (isFull, listener) => {
      if (nodes.length === 0) throw notOffered();
      const channel = channels.get(isFull) ?? open(isFull);
      channels.set(isFull, channel);
      try {
        await channel.taken;
      } catch (error) {
        close(isFull, channel);
        throw error;
      }
      channel.listeners.add(listener);
      return () => {
        channel.listeners.delete(listener);
        if (channel.listeners.size === 0) close(isFull, channel);
      };
    },
  };
};
