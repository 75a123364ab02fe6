import { LRUCache } from "lru-cache";
import type { Context } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import { type Node, type NodeError, UnverifiedError } from "../core/node.ts";
import { bloomAdmits } from "../ethereum/bloom.ts";
import { formatQuantity, isHash, isQuantity } from "../ethereum/hex.ts";
import { type LogFilter, withoutWildcards } from "../ethereum/logFilter.ts";
import { isFields } from "../json/jsonBytes.ts";
import type { LogVerifier } from "../verification/logVerifier.ts";
import { formatList, joinLogs, orderLogs } from "./mergeLogs.ts";
import { type FetchRange, lastFinal } from "./plan.ts";
import { invalidAnswer, otherBranch, type RangeResponse, requestJson } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

/**
 * Final blocks at the end of a range that are requested again if they have no logs.
 * One of several machines behind a URL may lag, and then leaves out the end of a range.
 */
const MAX_FINAL_RECHECKS = 8;

/** The requests for blocks whose logs a response seems to lack. */
export interface Recheck {
  /** Tried in this order, until one has logs. */
  readonly ranges: readonly FetchRange[];
  /** The numbers of these blocks; undefined if the ranges have no other blocks. */
  readonly blocks?: ReadonlySet<number>;
}

/** Logs that passed the checks, with those that the node had left out. */
export interface CheckedLogs {
  readonly logs: readonly ScannedLog[];
  /** The block ring has every block of the range. */
  readonly verified: boolean;
}

/** Throws if a log is of another branch than the view's. */
export const rejectOtherBranch = ({ node, logs, context }: RangeResponse): void => {
  if (!areCanonical(logs, context.view.heads)) {
    throw otherBranch(node, "Logs of a block that is not canonical");
  }
};

/** Plans the requests for logs that are missing according to the blooms of the block ring. */
export const planRechecks = ({ node, range, logs, context }: RangeResponse): readonly Recheck[] => {
  const { heads } = context.view;
  const numbers = findBlocksWithMissingLogs(range, logs, heads);
  const wide = withoutWildcards(range.filter);
  if (!range.final && numbers.length > 1 && wide !== range.filter) {
    // A bloom does not count topics. With a filter such as `[Transfer, any, any, any]` it admits nearly every block.
    // So their logs with any number of topics are fetched in one request.
    const together = { from: numbers.at(-1) ?? range.from, to: range.to, final: false, filter: wide, avoided: node };
    return [{ ranges: [together], blocks: new Set(numbers.map(Number)) }];
  }
  return numbers.flatMap((number) => {
    const block = heads.at(number);
    if (block === undefined) {
      return [];
    }
    const { filter, final } = range;
    const alone = { from: number, to: number, blockHash: block.hash, filter, final: false, isRecheck: true } as const;
    // A final range is checked with the node that returned it: a lagging machine does not have the block.
    // The node may leave out the logs again.
    const ranges = [...(final ? [{ ...alone, node }] : []), { ...alone, avoided: node }];
    return [{ ranges }];
  });
};

/** Adds the logs that were missing. Throws if the node may lack more, or has left the view's branch. */
export const addMissing = async (response: RangeResponse, missing: readonly ScannedLog[]): Promise<CheckedLogs> => {
  const { node, range, logs, context } = response;
  const { heads } = context.view;
  const last = lastFinal(range, heads);
  // Of the final blocks only the last ones were checked: more logs may be missing.
  if (last !== undefined && missing.some(({ block }) => block <= last)) {
    throw lagging(node);
  }
  if (range.final) {
    return { logs, verified: true };
  }
  await requireBranch(response);
  const complete = missing.length > 0 ? orderLogs([...logs, ...missing]) : logs;
  if (complete === undefined) {
    throw invalidAnswer(node, "Logs of two blocks with one number");
  }
  return { logs: complete, verified: coversRecent(range, heads) };
};

/** Throws: no node has the block of logs that seem to be missing. */
export const rejectUnfound = async (response: RangeResponse): Promise<never> => {
  await requireBranch(response);
  throw lagging(response.node);
};

/** The logs of the same range, and the nodes that returned them. */
interface OtherLogs {
  readonly logs: readonly ScannedLog[];
  readonly nodes: ReadonlySet<string>;
}

/**
 * Compares logs with those of another origin. At a difference, the receipts of the first block that differs decide. Rejects with
 * UnverifiedError if they show that the node of the response is wrong. Records the other node if that one is.
 */
export const compareLogs = async (
  { node, range: { filter }, logs, context }: RangeResponse,
  other: OtherLogs,
  verifier: LogVerifier,
  nodes: readonly Node[],
): Promise<"same" | "otherIsWrong" | "undecided"> => {
  const difference = findDifference(logs, other.logs);
  if (difference === undefined) {
    return "same";
  }
  const hash = context.view.heads.at(BigInt(difference.block))?.hash ?? difference.hash;
  const receipts = await verifier.findReceipts(filter, hash, context);
  if (receipts === undefined) {
    return "undecided";
  }
  const check = (each: Node, list: readonly ScannedLog[]): Promise<void> => {
    const ofBlock = list.filter(({ block }) => block === difference.block);
    return verifier.check(each, formatList([joinLogs(ofBlock)]), receipts);
  };
  await check(node, logs);
  // Of several nodes, it is not known which one returned the block.
  const [name] = other.nodes;
  const wrong = other.nodes.size === 1 ? nodes.find((each) => each.name === name) : undefined;
  await (wrong && check(wrong, other.logs).catch(ignoreUnverified));
  return "otherIsWrong";
};

/** Whether the block of this bloom may have logs of the filter. An empty bloom has none, even for a filter that matches any log. */
export const admitsLogs = (bloom: Uint8Array, filter: LogFilter): boolean =>
  bloom.some((byte) => byte !== 0) && bloomAdmits(bloom, filter);

const lagging = (node: Node): NodeError => invalidAnswer(node, "The node left out the end of a range");

/** A block commits to all blocks before it: below the ring, its oldest block represents the range. */
const anchorOf = ({ to }: FetchRange, heads: Heads) => heads.at(to) ?? heads.at(heads.oldest) ?? heads.latest;

/** Throws if the node is not on the view's branch any more. */
const requireBranch = async ({ node, range, context }: RangeResponse): Promise<void> => {
  const anchor = anchorOf(range, context.view.heads);
  const block = await requestJson(node, "eth_getBlockByNumber", [formatQuantity(anchor.number), false], context);
  const hash = isFields(block) && isHash(block.hash) ? block.hash.toLowerCase() : undefined;
  if (hash !== anchor.hash) {
    throw otherBranch(node, "The node has left the branch of its logs");
  }
};

/** Whether every log is of a canonical block. Blocks outside the block ring are not checked. */
const areCanonical = (logs: readonly ScannedLog[], heads: Heads): boolean => {
  let checked = -1;
  return logs.every(({ block, hash }, at) => {
    if (block === checked) {
      return hash === logs[at - 1]?.hash;
    }
    checked = block;
    const canonical = heads.at(BigInt(block));
    return canonical === undefined || canonical.hash === hash;
  });
};

/** Whether the block ring has every recent block of the range. Only then it can verify logs. */
const coversRecent = (range: FetchRange, heads: Heads): boolean => {
  const last = lastFinal(range, heads);
  const from = last === undefined ? range.from : last + 1n;
  return from >= heads.oldest && range.to <= heads.latest.number;
};

/**
 * Finds blocks without logs whose bloom admits one; newest first.
 * It checks all recent blocks. Of final ones it checks those after the last log.
 */
const findBlocksWithMissingLogs = (range: FetchRange, logs: readonly ScannedLog[], heads: Heads): bigint[] => {
  const { oldest } = heads;
  if (range.to < oldest) {
    return [];
  }
  const hasLogs = new Set<number>();
  for (let at = logs.length - 1; at >= 0 && BigInt(logs[at]?.block ?? -1) >= oldest; at--) {
    hasLogs.add(logs[at]?.block ?? -1);
  }
  const lastWithLogs = BigInt(logs.at(-1)?.block ?? -1);
  const isMissing = (number: bigint) => {
    const block = hasLogs.has(Number(number)) ? undefined : heads.at(number);
    return block !== undefined && admitsLogs(block.logsBloom, range.filter);
  };
  const firstRecent = (lastFinal(range, heads) ?? range.from - 1n) + 1n;
  const isKnown = (number: bigint) => number >= range.from && number >= oldest;
  const missing: bigint[] = [];
  let number = range.to;
  for (; isKnown(number) && number >= firstRecent; number--) {
    if (isMissing(number)) {
      missing.push(number);
    }
  }
  const maxMissing = missing.length + MAX_FINAL_RECHECKS;
  for (; isKnown(number) && number > lastWithLogs && missing.length < maxMissing; number--) {
    if (isMissing(number)) {
      missing.push(number);
    }
  }
  return missing;
};

const isSameLog = (one: ScannedLog | undefined, other: ScannedLog | undefined): boolean =>
  one?.block === other?.block && one?.index === other?.index && one?.hash === other?.hash;

/** Returns a log of the first block in which two ordered lists differ; undefined if both have the same logs. */
const findDifference = (one: readonly ScannedLog[], other: readonly ScannedLog[]): ScannedLog | undefined => {
  const length = Math.max(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const left = one[at];
    const right = other[at];
    if (!isSameLog(left, right)) {
      return left === undefined || (right !== undefined && right.block < left.block) ? right : left;
    }
  }
  return undefined;
};

/** The check has recorded the node. */
const ignoreUnverified = (error: unknown): void => {
  if (!(error instanceof UnverifiedError)) {
    throw error;
  }
};

const CACHED_BLOCKS = 65_536;
/** Blocks of one segment: requests that are sent together go out as one batch. */
const BATCH_BLOCKS = 128;

/** Timestamps (quantities) by block hash, of blocks with a log that has no timestamp. */
export type Timestamps = ReadonlyMap<string, string>;

/** Finds `blockTimestamp` for logs of nodes that leave it out (docs/methods.md, Log object). */
export class LogTimestamps {
  readonly #verifier: Pick<LogVerifier, "knownHeader" | "readHeader"> | undefined;
  /** By block hash. Created with the first timestamp: the empty cache takes 1.5 MB. */
  #cached: LRUCache<string, string> | undefined;

  constructor(verifier: Pick<LogVerifier, "knownHeader" | "readHeader"> | undefined) {
    this.#verifier = verifier;
  }

  /** Reads the block ring and known headers first, then the blocks from the node. Throws if the node does not have a block. */
  async fill(logs: readonly ScannedLog[], node: Node, context: Context): Promise<Timestamps> {
    const { timestamps, missing } = this.#find(logs, context);
    for (let at = 0; at < missing.length; at += BATCH_BLOCKS) {
      await Promise.all(
        missing.slice(at, at + BATCH_BLOCKS).map(async (hash) => {
          timestamps.set(hash, await this.#read(hash, node, context));
        }),
      );
    }
    return timestamps;
  }

  /** Finds the timestamps of one block's logs. Undefined if they are not known. */
  async fillBlock(logs: readonly ScannedLog[], context: Context): Promise<Timestamps | undefined> {
    const { timestamps, missing } = this.#find(logs, context);
    const [hash] = missing;
    if (hash === undefined) {
      return timestamps;
    }
    const block = isHash(hash) ? await this.#verifier?.readHeader(hash, context) : undefined;
    return isQuantity(block?.timestamp) ? timestamps.set(hash, block.timestamp) : undefined;
  }

  #find(
    logs: readonly ScannedLog[],
    context: Context,
  ): { readonly timestamps: Map<string, string>; readonly missing: readonly string[] } {
    const timestamps = new Map<string, string>();
    const missing = new Set<string>();
    for (const log of logs) {
      if (log.hasTimestamp || timestamps.has(log.hash)) {
        continue;
      }
      const timestamp =
        readRing(context.view.heads, log) ?? this.#cached?.get(log.hash) ?? this.#readKnown(log.hash, context);
      if (timestamp === undefined) {
        missing.add(log.hash);
      } else {
        timestamps.set(log.hash, timestamp);
      }
    }
    return { timestamps, missing: [...missing] };
  }

  #readKnown(hash: string, context: Context): string | undefined {
    const header = this.#verifier?.knownHeader(hash, context);
    return header && formatQuantity(header.timestamp);
  }

  async #read(hash: string, node: Node, context: Context): Promise<string> {
    const block = await requestJson(node, "eth_getBlockByHash", [hash, false], context);
    if (!isFields(block) || !isQuantity(block.timestamp)) {
      throw invalidAnswer(node, "The node has no block for a log that it returned");
    }
    this.#cached ??= new LRUCache({ max: CACHED_BLOCKS });
    this.#cached.set(hash, block.timestamp);
    return block.timestamp;
  }
}

const readRing = (heads: Heads, { block, hash }: ScannedLog): string | undefined => {
  const canonical = heads.at(BigInt(block));
  return canonical?.hash === hash ? formatQuantity(canonical.timestamp) : undefined;
};
