import type { ChainConfig } from "../config/schema.ts";
import type { PendingChange, View } from "../core/view.ts";
import { type Address, formatData, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/recoverAddress.ts";
import { createFeed } from "../feed/feedClient.ts";
import { createRecentFlashblocks, type RecentFlashblocks } from "../feed/recentFlashblocks.ts";
import { type RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { createPending, type Pending } from "../pending/pending.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createExecution, type Execution, noExecutor } from "./createExecution.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";
import { directNodeCall } from "./directNodeCall.ts";
import { resolveForks } from "./resolveForks.ts";
import type { Upstreams } from "./upstreams.ts";
import { RulesWatch } from "./watchRules.ts";

/** The views of one chain, and what executes on them: there once the nodes have told what chain it is. */
export interface PendingViews {
  /** Rejects where nodes are not of one chain. */
  readonly ready: Promise<void>;
  /** Throws RpcError (503) before the first head. */
  view(): View;
  readonly execution: Execution | undefined;
  /** The newest messages of the feed, for the status page. */
  readonly flashblocks: RecentFlashblocks;
  subscribe(listener: (change: PendingChange) => void): () => void;
  /** A node accepted this raw transaction through here: its sender's pending nonce counts it. Its hash comes back. */
  recordSubmitted(raw: string): Hash | undefined;
  /** `nonce` raised over the consecutive transactions of that sender that a node accepted through this or another replica. */
  advanceNonce(sender: Address, nonce: bigint): Promise<bigint>;
  close(): Promise<void>;
}

export const noHead = (chain: string): RpcError => unavailable(`chain "${chain}": no node has told its head yet`);

export const createPendingViews = (
  config: ChainConfig,
  upstreams: Upstreams,
  { store, sharedValues }: Pick<ReadPipeline, "store" | "sharedValues">,
  telemetry: Telemetry,
): PendingViews => {
  const { name: chain, pending: options } = config;
  const { log } = telemetry;
  const listeners = new Set<(change: PendingChange) => void>();
  const flashblocks = createRecentFlashblocks();
  let pending: Pending | undefined;
  let execution: Execution | undefined;
  let rules: RulesWatch | undefined;
  let closed = false;

  const sealed = (): View => {
    const heads = upstreams.heads.current();
    if (heads === undefined) throw noHead(chain);
    return { heads };
  };
  const ask = directNodeCall(upstreams, sealed);

  const start = async (): Promise<void> => {
    await upstreams.ready;
    const { chainId } = upstreams.genesis;
    const found = await resolveForks(config.forks, chainId, ask).catch((error: unknown) => {
      log.warn({ err: error, chain }, "the chain's rules could not be read: nothing is executed here");
      return undefined;
    });
    rules =
      found &&
      new RulesWatch({
        ...found,
        chain,
        genesisHash: () => upstreams.genesis.hash,
        heads: upstreams.heads,
        ask,
        telemetry,
      });
    await rules?.start();
    if (closed) {
      rules?.close();
      return;
    }
    const { feeds, maxMessageBytes } = options;
    execution = rules && createExecution({ config, rules, upstreams, store, telemetry });
    if (!rules) log.info({ chain }, "the chain's rules are not known: simulations go to a node");
    pending = createPending({
      chain,
      mode: options.mode,
      maxDepth: options.maxDepth,
      ignoresReceiptsRoot: config.quirks.anvilDepositNonce,
      heads: upstreams.heads,
      executor: (feeds.length > 0 ? execution?.executor() : undefined) ?? noExecutor,
      ...(feeds.length > 0 && {
        openFeed: (onMessage, blockTimeMs) =>
          createFeed({
            chain,
            urls: feeds,
            maxMessageBytes,
            blockTimeMs,
            onMessage: (message) => {
              flashblocks.note(message);
              onMessage(message);
            },
            telemetry,
          }),
      }),
      read: ask,
      sharedValues,
      telemetry,
    });
    pending.subscribe((change) => {
      for (const listener of listeners) listener(change);
    });
  };

  return {
    ready: start(),
    view: () => pending?.view() ?? sealed(),
    flashblocks,
    get execution() {
      return execution;
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    recordSubmitted: (raw) => {
      if (!isData(raw)) return undefined;
      const bytes = parseData(raw);
      try {
        const transaction = parseTransaction(bytes);
        if (transaction.type === DEPOSIT_TYPE) return transaction.hash;
        const sender = recoverSender(transaction);
        if (sender !== undefined) pending?.recordSubmitted(transaction.hash, sender, transaction.nonce);
        return transaction.hash;
      } catch (error) {
        if (!(error instanceof InvalidTransaction)) throw error;
        // A type that is not known here: the node took it.
        return formatData(keccak256(bytes));
      }
    },
    advanceNonce: async (sender, nonce) => pending?.advanceNonce(sender, nonce) ?? nonce,
    close: async () => {
      closed = true;
      rules?.close();
      await pending?.close();
      await execution?.close();
    },
  };
};
