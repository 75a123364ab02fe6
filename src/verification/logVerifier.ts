import type { Context } from "../core/context.ts";
import { type Node, UnverifiedError } from "../core/node.ts";
import { type Hash, isData, isHash, parseData } from "../ethereum/hex.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import type { Verifier } from "./verifier.ts";

const LOGS = { method: "eth_getLogs" } as const;

/** The block of logs, by its hash if that is known. */
export type LogsBlock = { readonly hash: Hash } | { readonly number: bigint; readonly hash?: undefined };

/** The part of a verified header that its logs must match. */
export interface LogsHeader {
  readonly number: bigint;
  readonly timestamp: bigint;
  readonly logsBloom: Uint8Array;
}

/** The place of one log. */
interface LogPlace {
  /** A block number. */
  readonly block: number;
  /** The hash of the block. */
  readonly hash: string;
}

interface StampedLog extends LogPlace {
  /** The timestamp of the block; NaN if the node stated none. */
  readonly timestamp: number;
}

/** Reads what other responses say of the blocks of logs. */
export interface LogReads {
  /** Whether the receipts of a block do not cost more than its logs. */
  readonly areReceiptsCheap: boolean;
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

/** Says whether logs are true. Receipts or a bloom verify those of one block, blooms of known headers those of a range. */
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

  /** Reads the verified receipts of a block, whose logs need no further check. Undefined if its logs cost less, or no node has them. */
  async readReceipts(block: LogsBlock, context: Context): Promise<Uint8Array | undefined> {
    return this.#verifier.verifiesReceipts() && this.#reads.areReceiptsCheap
      ? this.#reads.receiptsOf(block, context)
      : undefined;
  }

  /** Returns the header of a block if it was computed from a response, or from the block ring. */
  knownHeader(hash: string, { view: { heads } }: Pick<Context, "view">): LogsHeader | undefined {
    const header = this.#verifier.headerOf({ hash }, heads);
    return header?.isComputed === true && isData(header.logsBloom)
      ? { number: header.number, timestamp: header.timestamp, logsBloom: parseData(header.logsBloom) }
      : undefined;
  }

  /** Reads the fields of a block by its hash. Undefined if they cannot be verified, or cannot be read now. */
  async readHeader(hash: Hash, context: Context): Promise<Readonly<Record<string, unknown>> | undefined> {
    return this.#verifier.verifiesReceipts() ? ifReadable(this.#reads.headerOf(hash, context), context) : undefined;
  }

  /** Whether a log states another timestamp than the header of its block, as far as that is known. */
  hasWrongTimestamp(logs: readonly StampedLog[], { view: { heads } }: Pick<Context, "view">): boolean {
    let last = "";
    let expected: bigint | undefined;
    return logs.some(({ block, hash, timestamp }) => {
      if (hash !== last) {
        last = hash;
        const header = this.#verifier.headerOf({ hash: hash.toLowerCase(), number: BigInt(block) }, heads);
        expected = header?.isComputed === true ? header.timestamp : undefined;
      }
      return expected !== undefined && !Number.isNaN(timestamp) && BigInt(timestamp) !== expected;
    });
  }

  /** Finds the blooms that verify these logs; undefined if there are none. `isOneBlock`: if its header is not known, it is read. */
  async findEvidence(
    filter: LogFilter,
    logs: readonly LogPlace[],
    context: Context,
    isOneBlock: boolean,
  ): Promise<LogEvidence | undefined> {
    if (this.#verifier.level !== "full") {
      return undefined;
    }
    const blooms = this.#bloomsOf(logs, context);
    const hash = logs[0]?.hash;
    if (isOneBlock && blooms.size === 0 && isHash(hash)) {
      const bloom = (await this.readHeader(hash, context))?.logsBloom;
      return isData(bloom) ? { filter, receipts: undefined, blooms: new Map([[hash, parseData(bloom)]]) } : undefined;
    }
    return blooms.size === 0 ? undefined : { filter, receipts: undefined, blooms };
  }

  /** Reads the receipts that decide between two lists of one block's logs; undefined if they cannot be read or verified. */
  async findReceipts(filter: LogFilter, hash: string, context: Context): Promise<LogEvidence | undefined> {
    const isReadable = this.#verifier.verifiesReceipts() && isHash(hash);
    const receipts = isReadable ? await this.#reads.receiptsOf({ hash }, context) : undefined;
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

  /** Returns the blooms of blocks with logs. Blocks whose header is not known are left out. */
  #bloomsOf(logs: readonly LogPlace[], { view: { heads } }: Context): Map<string, Uint8Array> {
    const blooms = new Map<string, Uint8Array>();
    let last = "";
    for (const { block, hash } of logs) {
      if (hash === last) {
        continue;
      }
      last = hash;
      const number = BigInt(block);
      const header = this.#verifier.headerOf({ hash: hash.toLowerCase(), number }, heads);
      const bloom = header?.logsBloom;
      // A header that only a node stated counts against no other node, unless its block is canonical.
      const isKnown = header?.isComputed === true || heads.at(number)?.hash === header?.hash;
      if (isKnown && isData(bloom)) {
        blooms.set(hash, parseData(bloom));
      }
      if (blooms.size === MAX_BLOOMS) {
        break;
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
