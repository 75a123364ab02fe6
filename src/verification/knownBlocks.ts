import { LRUCache } from "lru-cache";
import type { BlockTransactions } from "./blockTransactions.ts";
import type { VerifiedReceipts } from "./verifiedReceipts.ts";

/** The limit of either list. Transactions: about 450 blocks of 150 transactions. Receipts: about 350 such blocks. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_BLOCKS = 512;
/** The size of an entry without its rows. */
const ENTRY_BYTES = 256;

interface BlockRows {
  readonly hash: string;
  readonly rows: string;
}

const createList = <T extends BlockRows>(): LRUCache<string, T> =>
  new LRUCache<string, T>({
    max: MAX_BLOCKS,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ rows }) => rows.length + ENTRY_BYTES,
  });

/** The verified lists of one block, if they are known. */
export interface KnownBlock {
  readonly transactions: BlockTransactions | undefined;
  readonly receipts: VerifiedReceipts | undefined;
}

/** Caches the transactions and the receipts of verified blocks, to compare single ones with them. */
export class KnownBlocks {
  readonly #transactions = createList<BlockTransactions>();
  readonly #receipts = createList<VerifiedReceipts>();

  add({ transactions, receipts }: Partial<KnownBlock>): void {
    if (transactions !== undefined) {
      this.#transactions.set(transactions.hash, transactions);
    }
    if (receipts !== undefined) {
      this.#receipts.set(receipts.hash, receipts);
    }
  }

  get(hash: string): KnownBlock {
    return { transactions: this.#transactions.get(hash), receipts: this.#receipts.get(hash) };
  }
}
