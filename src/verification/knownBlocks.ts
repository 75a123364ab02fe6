import { LRUCache } from "lru-cache";
import type { BlockId, Heads } from "../core/heads.ts";
import { isFields, parseJson } from "../json/jsonBytes.ts";
import type { BlockTransactions, VerifiedReceipts } from "./blockRows.ts";
import { checkBody } from "./checkBody.ts";
import { checkHeader } from "./checkHeader.ts";
import type { Evidence } from "./evidence.ts";
import { ifWellFormed } from "./jsonFields.ts";
import { type KnownHeader, knownHeaderOf } from "./knownHeader.ts";

/** The limit of either list. Transactions: about 450 blocks of 150 transactions. Receipts: about 430 such blocks. */
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

/** Reads the header fields from the JSON text of a block; undefined if it is no block. */
const readKnownHeader = (body: Uint8Array): KnownHeader | undefined => {
  const block = parseJson(body);
  if (!isFields(block)) {
    return undefined;
  }
  return ifWellFormed(() => knownHeaderOf(block, checkHeader(block).outcome === "passed"), undefined);
};

const MAX_HEADERS = 256;

/** Caches headers by their hash. Each hash was computed from the header. */
export class VerifiedHeaders {
  readonly #headers = new LRUCache<string, KnownHeader>({ max: MAX_HEADERS });
  readonly #evidence: Evidence;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** Returns the header of a block; undefined if neither this cache nor the block ring has it. */
  find({ hash, number }: Partial<Pick<BlockId, "number">> & { hash: string }, heads: Heads): KnownHeader | undefined {
    return this.#headers.get(hash) ?? this.#readRing(hash, number, heads);
  }

  /** Caches the header of a verified block, given as JSON text. */
  add(block: Uint8Array): KnownHeader | undefined {
    const header = readKnownHeader(block);
    return header && this.addHeader(header);
  }

  /** Caches and returns the header of a verified block. */
  addHeader(header: KnownHeader): KnownHeader {
    this.#headers.set(header.hash, header);
    return header;
  }

  #readRing(hash: string, number: bigint | undefined, heads: Heads): KnownHeader | undefined {
    if (number === undefined || heads.at(number)?.hash !== hash) {
      return undefined;
    }
    const fields = heads.header(number);
    if (fields === undefined) {
      return undefined;
    }
    const block = Buffer.from(JSON.stringify({ ...fields, hash }));
    // The hash of a header in the ring was not computed. If it is wrong, the header is read from a node.
    const findings = checkBody(block, { kind: "block", location: { hash, number }, checksHashes: true });
    const isVerified = findings.every(({ outcome }) => outcome === "passed");
    const known = findings.find((finding) => finding.known !== undefined)?.known;
    if (isVerified && known !== undefined) {
      return this.addHeader(known);
    }
    return this.#evidence.isOff("header") ? this.add(block) : undefined;
  }
}
