import type { Context } from "../core/context.ts";
import { type Node, UnverifiedError } from "../core/node.ts";
import { type Hash, isData, isHash, parseData } from "../ethereum/hex.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import type { Verifier } from "./verifier.ts";

const LOGS = { method: "eth_getLogs" } as const;

/** The block of logs. `hash` is set if it is known. */
interface LogsBlock {
  readonly number: bigint;
  readonly hash?: Hash | undefined;
}

/** The place of one log. */
interface LogPlace {
  /** A block number. */
  readonly block: number;
  /** The hash of the block. */
  readonly hash: string;
}

/** Reads what other responses say of the blocks of logs. */
export interface LogReads {
  /** Reads a block's verified receipts. Returns undefined if no node has them. */
  receiptsOf(block: LogsBlock, context: Context): Promise<Uint8Array | undefined>;
  /** Reads the fields of a block by its hash, verified. Returns undefined if no node has it. */
  headerOf(hash: Hash, context: Context): Promise<Readonly<Record<string, unknown>> | undefined>;
}

/** The values with which the logs of a response are compared. */
export interface LogEvidence {
  readonly filter: LogFilter;
  readonly receipts: Uint8Array | undefined;
  /** By block hash. */
  readonly blooms: ReadonlyMap<string, Uint8Array>;
}

/** Limit of the blocks whose blooms one response is compared with: a new header is hashed first. */
const MAX_BLOOMS = 64;

/** Says whether logs are true. Receipts or a bloom verify those of one block, blooms of the block ring those of a range. */
export class LogVerifier {
  readonly #verifier: Verifier;
  readonly #reads: LogReads;

  constructor(verifier: Verifier, reads: LogReads) {
    this.#verifier = verifier;
    this.#reads = reads;
  }

  /** Whether logs that their filter does not match are wrong. */
  get checksFilter(): boolean {
    return this.#verifier.level !== "off";
  }

  /**
   * Finds the values that verify these logs; undefined if there are none. For the logs of one block, `block`, its receipts are
   * read. If no node has them, and the block ring does not have the block, its header is read for the bloom.
   */
  async findEvidence(
    filter: LogFilter,
    block: LogsBlock | undefined,
    logs: readonly LogPlace[],
    context: Context,
  ): Promise<LogEvidence | undefined> {
    if (this.#verifier.level !== "full") {
      return undefined;
    }
    const known = block && this.#verifier.verifiesReceipts() ? block : undefined;
    const receipts = known && (await this.#reads.receiptsOf(known, context));
    const blooms = this.#bloomsOf(logs, context);
    const hash = logs[0]?.hash;
    if (known !== undefined && receipts === undefined && blooms.size === 0 && isHash(hash)) {
      const bloom = (await ifReadable(this.#reads.headerOf(hash, context), context))?.logsBloom;
      return isData(bloom) ? { filter, receipts, blooms: new Map([[hash, parseData(bloom)]]) } : undefined;
    }
    return receipts === undefined && blooms.size === 0 ? undefined : { filter, receipts, blooms };
  }

  /** Reads the receipts that decide between two lists of one block's logs; undefined if they cannot be read or verified. */
  async findReceipts(
    filter: LogFilter,
    { number, hash }: { readonly number: bigint; readonly hash: string },
    context: Context,
  ): Promise<LogEvidence | undefined> {
    const isReadable = this.#verifier.verifiesReceipts() && isHash(hash);
    const receipts = isReadable ? await this.#reads.receiptsOf({ number, hash }, context) : undefined;
    return receipts && { filter, receipts, blooms: new Map() };
  }

  /** Compares a JSON list of logs with the evidence. Records a wrong node, and rejects with UnverifiedError. */
  async check(node: Node, list: Uint8Array, evidence: LogEvidence): Promise<void> {
    try {
      await this.#verifier.check({ node, call: LOGS }, list, { kind: "logs", ...evidence });
    } catch (error) {
      if (error instanceof UnverifiedError) {
        node.recordWrongAnswer?.(error);
      }
      throw error;
    }
  }

  /** Returns the blooms of blocks with logs. Blocks outside the block ring are left out. */
  #bloomsOf(logs: readonly LogPlace[], { view: { heads } }: Context): Map<string, Uint8Array> {
    const blooms = new Map<string, Uint8Array>();
    let last = "";
    let blocks = 0;
    for (const { block, hash } of logs) {
      if (hash === last) {
        continue;
      }
      last = hash;
      const header = heads.at(BigInt(block));
      if (header?.hash !== hash.toLowerCase() || blocks++ >= MAX_BLOOMS) {
        continue;
      }
      const bloom = this.#verifier.bloomOf(header, heads);
      if (isData(bloom)) {
        blooms.set(hash, parseData(bloom));
      }
    }
    return blooms;
  }
}

/** Records that the node's logs are wrong, which suspends it. Returns the error for the caller to throw. */
export const wrongLogs = (node: Node): UnverifiedError => {
  const error = new UnverifiedError(node.name, "logs", true);
  node.recordWrongAnswer?.(error);
  return error;
};

/** Returns undefined if the value cannot be read now: then it cannot verify anything. */
const ifReadable = async <T>(reading: Promise<T>, { signal }: Context): Promise<T | undefined> => {
  try {
    return await reading;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
};
