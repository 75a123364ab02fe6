import type { BlockId, FollowedHeads, Heads } from "../core/heads.ts";
import { formatQuantity, type Hash, isHash } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { DataStorage } from "../storage/dataStorage.ts";
import { isDevelopmentNode } from "../telemetry/forwardedReasons.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { ChainKeys } from "./cacheEntry.ts";

export interface StoredChainOptions {
  /** Name of the chain, for the log. */
  readonly chain: string;
  readonly storage: DataStorage;
  readonly keys: Pick<ChainKeys, "prefix">;
  /** Whether entries may be stored: a development node can change its past. It is asked again if it rejects. */
  isStored(): Promise<boolean>;
  /** Returns the hash that the nodes have at a number; undefined if they have no block there. */
  hashAt(number: bigint): Promise<Hash | undefined>;
  readonly telemetry: Pick<Telemetry, "log">;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
}

type FinalHeads = Pick<Heads, "finalized" | "at">;

/** No node has answered, or none has the block yet. */
const RETRY_MS = 5_000;

/**
 * The entries of one chain in the data folder. They are used after the nodes have confirmed the newest final block that was stored.
 * Otherwise they are of a chain that was started again, or of a block that was replaced.
 */
export class StoredChain {
  readonly #options: StoredChainOptions;
  #isStored: boolean | undefined;
  /** The part that was opened, or is being opened. */
  #part: string | undefined;
  /** The final block that the part has. */
  #newest: BlockId | undefined;
  #heads: FinalHeads | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: StoredChainOptions) {
    const { storage, signal } = options;
    this.#options = options;
    const unsubscribe = storage.onOpened(() => void this.#open());
    signal.addEventListener("abort", () => {
      unsubscribe();
      clearTimeout(this.#retry);
    });
  }

  /** Records a new final block. If the recorded one may have been replaced, it is compared with the nodes again. */
  onHeads(heads: FinalHeads): void {
    const { keys, storage } = this.#options;
    const { finalized } = heads;
    const before = this.#heads?.finalized;
    this.#heads = heads;
    if (this.#part !== keys.prefix) {
      // The chain was reset.
      void this.#open();
    } else if (!storage.isOpen(this.#part)) {
      return;
    } else if (this.#newest !== undefined && !isKept(this.#newest, before, heads)) {
      storage.closePart(this.#part);
      // Entries that wait to be written are lost: they may be of the old block too.
      this.#openLater();
    } else if (finalized !== undefined && finalized.number > (this.#newest?.number ?? -1n)) {
      this.#newest = finalized;
      storage.setFinalBlock(this.#part, { number: String(finalized.number), hash: finalized.hash });
    }
  }

  async #open(): Promise<void> {
    const { chain, keys, storage, hashAt, telemetry, signal } = this.#options;
    const part = keys.prefix;
    if (this.#part === part && storage.isOpen(part)) {
      return;
    }
    clearTimeout(this.#retry);
    this.#part = part;
    this.#newest = undefined;
    try {
      this.#isStored ??= await this.#options.isStored();
      if (!this.#isStored || signal.aborted) {
        return;
      }
      await storage.openPart(part, async ({ number, hash }) => {
        const found = await hashAt(BigInt(number));
        if (found === undefined) {
          throw new Error(`no node has block ${number} yet`);
        }
        this.#newest = found === hash ? { number: BigInt(number), hash: found } : undefined;
        return found === hash;
      });
      if (this.#heads !== undefined) {
        this.onHeads(this.#heads);
      }
    } catch (err) {
      telemetry.log.debug({ err, chain }, "stored entries are not compared with the chain yet");
      this.#openLater();
    }
  }

  #openLater(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#open(), RETRY_MS).unref();
  }
}

/** A node that refuses the method is no development node. Without any response, nothing is known. */
const textOfRefusal = (error: unknown): string => {
  if (error instanceof RpcError && error.code !== CODES.INTERNAL) {
    return error.message;
  }
  throw error;
};

const hashOfBlock = (block: unknown): Hash | undefined =>
  isFields(block) && isHash(block.hash) ? block.hash : undefined;

/** Opens the entries of a chain whose heads are known. `isAlways`: those of a development node too. */
export const openStoredChain = (
  options: Omit<StoredChainOptions, "isStored" | "hashAt">,
  heads: FollowedHeads,
  callNode: (method: string, params: readonly unknown[]) => Promise<unknown>,
  isAlways: boolean,
): void => {
  const stored = new StoredChain({
    ...options,
    isStored: async () => isAlways || !isDevelopmentNode(await callNode("web3_clientVersion", []).catch(textOfRefusal)),
    hashAt: async (number) => {
      const known = heads.current()?.at(number)?.hash;
      return known ?? hashOfBlock(await callNode("eth_getBlockByNumber", [formatQuantity(number), false]));
    },
  });
  const current = heads.current();
  if (current !== undefined) {
    stored.onHeads(current);
  }
  heads.subscribe((change) => stored.onHeads(change.heads));
};

/** Whether no head since `before` says that the newest final block was replaced. */
const isKept = (newest: BlockId, before: BlockId | undefined, { finalized, at }: FinalHeads): boolean => {
  const hasMovedBack = before !== undefined && (finalized === undefined || finalized.number < before.number);
  return !hasMovedBack && (at(newest.number)?.hash ?? newest.hash) === newest.hash;
};
