import { LRUCache } from "lru-cache";
import type { BlockTransactions } from "./blockTransactions.ts";
import type { ResponseChecks } from "./checkBody.ts";
import { readResponseBlock } from "./responseBlock.ts";

/** About 450 blocks of 150 transactions. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The size of an entry without its rows. */
const ENTRY_BYTES = 256;

/** Caches the transactions of verified blocks, to compare transactions and receipts with them. */
export class KnownTransactions {
  readonly #blocks = new LRUCache<string, BlockTransactions>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ rows }) => rows.length + ENTRY_BYTES,
  });

  add(block: BlockTransactions): void {
    this.#blocks.set(block.hash, block);
  }

  get(hash: string | undefined): BlockTransactions | undefined {
    return hash === undefined ? undefined : this.#blocks.get(hash);
  }

  /** Adds the block's transactions, if they are known, to the checks of one transaction or receipt. */
  addTo(checks: ResponseChecks, body: Uint8Array): ResponseChecks {
    if ((checks.kind !== "transaction" && checks.kind !== "receipt") || this.#blocks.size === 0) {
      return checks;
    }
    const block = this.get(readResponseBlock(body, "blockHash")?.hash);
    return block === undefined ? checks : { ...checks, block };
  }
}
