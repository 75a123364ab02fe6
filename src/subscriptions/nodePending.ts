import type { Ask } from "./sealedLogs.ts";
import { parseLogs, type SubscribedLog } from "./subscribedLog.ts";

/** The node's own pending block, where there is no feed and the chain is not native. */
export interface NodePendingSource {
  /** `pending` is answered by a node now. */
  isServing(): boolean;
  /** Reads at `pending`. */
  readonly ask: Ask;
}

export interface NodePendingOptions extends NodePendingSource {
  wantsLogs(): boolean;
  wantsBlocks(): boolean;
  onLogs(logs: readonly SubscribedLog[]): void;
  /** The text of a block with its transactions, or `null`. */
  onBlock(body: Uint8Array): void;
}

/** The contract's cadence of pre-confirmed updates. */
const PERIOD_MS = 200;

/** Looks at the node's pending block while somebody subscribes to it: one question for all of them, never two at a time. */
export const createNodePending = (options: NodePendingOptions): { close(): void } => {
  const { ask } = options;
  let looking = false;

  const look = async (): Promise<void> => {
    if (options.wantsLogs()) {
      options.onLogs(parseLogs(await ask("eth_getLogs", [{ fromBlock: "pending", toBlock: "pending" }])));
    }
    if (options.wantsBlocks()) options.onBlock(await ask("eth_getBlockByNumber", ["pending", true]));
  };

  const timer = setInterval(() => {
    if (looking || !(options.wantsLogs() || options.wantsBlocks()) || !options.isServing()) return;
    looking = true;
    look()
      // What was missed comes with the next look, or with the sealed block.
      .catch(() => {})
      .finally(() => {
        looking = false;
      });
  }, PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
};
