import type { RpcReader } from "./sealedLogs.ts";
import { parseLogs, type SubscribedLog } from "./subscribedLog.ts";

/** The node's own pending block. It is used if there is no feed and the chain is not native. */
export interface NodePendingSource {
  /** Whether a node answers at `pending` now. */
  isServing(): boolean;
  /** Reads at `pending`. */
  readonly read: RpcReader;
}

export interface NodePendingOptions extends NodePendingSource {
  wantsLogs(): boolean;
  wantsBlocks(): boolean;
  onLogs(logs: readonly SubscribedLog[]): void;
  /** Called with the JSON text of the block with its transactions, or `null`. */
  onBlock(body: Uint8Array): void;
}

/** Pre-confirmed updates are at most 200 ms late. */
const PERIOD_MS = 200;

/**
 * Polls the node's pending block while there is a subscription: one request for all of them, never two at a time.
 * The first poll is one period after the start.
 */
export const createNodePending = (options: NodePendingOptions): { close(): void } => {
  const { read } = options;
  let isPolling = false;

  const poll = async (): Promise<void> => {
    if (options.wantsLogs()) {
      options.onLogs(parseLogs(await read("eth_getLogs", [{ fromBlock: "pending", toBlock: "pending" }])));
    }
    if (options.wantsBlocks()) {
      options.onBlock(await read("eth_getBlockByNumber", ["pending", true]));
    }
  };

  const timer = setInterval(() => {
    if (isPolling || !(options.wantsLogs() || options.wantsBlocks()) || !options.isServing()) {
      return;
    }
    isPolling = true;
    poll()
      // The next poll or the sealed block delivers what this one missed.
      .catch(() => undefined)
      .finally(() => {
        isPolling = false;
      });
  }, PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
};
