import type { Heads } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { DataStorage } from "../storage/dataStorage.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { ChainKeys } from "./cacheEntry.ts";

export interface StoredChainOptions {
  /** Name of the chain, for the log. */
  readonly chain: string;
  readonly storage: DataStorage;
  readonly keys: Pick<ChainKeys, "prefix">;
  /** Whether entries may be stored: a development node can change its past. Asked once. */
  isStored(): Promise<boolean>;
  /** Reads the marks of all nodes of the chain. */
  readMarks(): Promise<void>;
  /** Returns the hash that the nodes have at a number; undefined if they have no block there. */
  hashAt(number: bigint): Promise<Hash | undefined>;
  readonly telemetry: Pick<Telemetry, "log">;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
}

/** No node has answered. */
const RETRY_MS = 5_000;

/**
 * The entries of one chain in the data folder. They are used after the nodes have confirmed the newest final block that was stored.
 * Otherwise they are of a chain that was started again, or of a block that was replaced.
 */
export class StoredChain {
  readonly #options: StoredChainOptions;
  readonly #isStored: Promise<boolean>;
  /** The part that was opened, or is being opened. */
  #part: string | undefined;
  #newest = -1n;
  #finalized: Heads["finalized"];
  #retry: NodeJS.Timeout | undefined;

  constructor(options: StoredChainOptions) {
    const { storage, signal } = options;
    this.#options = options;
    this.#isStored = options.isStored();
    const unsubscribe = storage.onOpened(() => void this.#open());
    signal.addEventListener("abort", () => {
      unsubscribe();
      clearTimeout(this.#retry);
    });
  }

  /** Records a new final block. */
  onHeads({ finalized }: Pick<Heads, "finalized">): void {
    const { keys, storage } = this.#options;
    this.#finalized = finalized;
    if (this.#part !== keys.prefix) {
      // The chain was reset.
      void this.#open();
    } else if (finalized !== undefined && finalized.number > this.#newest && storage.isOpen(this.#part)) {
      this.#newest = finalized.number;
      storage.setFinalBlock(this.#part, { number: String(finalized.number), hash: finalized.hash });
    }
  }

  async #open(): Promise<void> {
    const { chain, keys, storage, readMarks, hashAt, telemetry, signal } = this.#options;
    clearTimeout(this.#retry);
    const part = keys.prefix;
    this.#part = part;
    this.#newest = -1n;
    if (!(await this.#isStored) || signal.aborted) {
      return;
    }
    try {
      // Values of a lying node must not be served before its mark is known.
      await readMarks();
      await storage.openPart(part, async ({ number, hash }) => {
        const isRight = (await hashAt(BigInt(number))) === hash;
        this.#newest = isRight ? BigInt(number) : -1n;
        return isRight;
      });
      this.onHeads({ finalized: this.#finalized });
    } catch (err) {
      telemetry.log.debug({ err, chain }, "stored entries are not compared with the chain yet");
      this.#retry = setTimeout(() => void this.#open(), RETRY_MS).unref();
    }
  }
}
