import type { StateSource } from "../core/stateReader.ts";
import { type Address, type Data, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import type { SenderCache } from "../evm/senders/senderCache.ts";
import type { EvmWorkers } from "./evmWorkers.ts";

/** The sender of each transaction, in order. `undefined`: it is not recovered yet. */
export type Senders = readonly (Address | undefined)[];

export interface SenderRecoveryOptions {
  readonly cache: SenderCache;
  readonly workers: Pick<EvmWorkers, "run" | "idle" | "start">;
}

/** A thread that gets fewer transactions costs more in messages than it saves. One recovery takes some 50 us. */
const MIN_OF_THREAD = 8;
/** A thread that takes longer is replaced, and the executing thread recovers the senders. */
const TIMEOUT_MS = 1_000;

const NO_STATE: StateSource = { id: "", read: () => Promise.reject(new Error("a recovery reads no state")) };

/** Recovers the senders of a message's transactions on idle threads. Each transaction is recovered once. */
export class SenderRecovery {
  readonly #options: SenderRecoveryOptions;

  constructor(options: SenderRecoveryOptions) {
    this.#options = options;
  }

  /** Returns the cached senders at once if they suffice, or if no thread is idle. */
  of(raws: readonly Data[]): Senders | Promise<Senders> {
    const { cache, workers } = this.#options;
    const hashes = raws.map((raw) => keccak256Hex(parseData(raw)));
    const senders = hashes.map((hash) => cache.get(hash));
    const missing = [...senders.keys()].filter((at) => senders[at] === undefined);
    if (missing.length < 2 * MIN_OF_THREAD) {
      return senders;
    }
    const threads = Math.min(workers.idle, Math.floor(missing.length / MIN_OF_THREAD));
    if (threads === 0) {
      workers.start();
      return senders;
    }
    return this.#recover(raws, hashes, splitEvenly(missing, threads)).then(() =>
      hashes.map((hash, at) => cache.get(hash) ?? senders[at]),
    );
  }

  /** The senders that were recovered elsewhere. */
  add(transactions: readonly { readonly hash: Hash; readonly sender: Address | undefined }[]): void {
    for (const { hash, sender } of transactions) {
      if (sender !== undefined) {
        this.#options.cache.add(hash, sender);
      }
    }
  }

  async #recover(raws: readonly Data[], hashes: readonly Hash[], parts: readonly (readonly number[])[]): Promise<void> {
    await Promise.all(
      parts.map(async (part) => {
        const recovered = await this.#run(part.map((at) => raws[at] ?? "0x"));
        this.add(part.map((at, position) => ({ hash: hashes[at] ?? "0x", sender: recovered[position] })));
      }),
    );
  }

  async #run(input: readonly Data[]): Promise<Senders> {
    try {
      const { signal } = new AbortController();
      const request = { name: "recoverSenders", input, source: NO_STATE, nativeContracts: [] };
      const { output } = await this.#options.workers.run({ ...request, timeoutMs: TIMEOUT_MS, signal });
      return output as Senders;
    } catch {
      // The pool reports its failures. The executing thread recovers these senders.
      return [];
    }
  }
}

const splitEvenly = (positions: readonly number[], parts: number): readonly (readonly number[])[] => {
  const size = Math.ceil(positions.length / parts);
  return Array.from({ length: parts }, (_, part) => positions.slice(part * size, (part + 1) * size));
};
