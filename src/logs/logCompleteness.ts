import type { Heads } from "../core/heads.ts";
import { bloomAdmits } from "../ethereum/bloom.ts";
import { formatQuantity, isHash } from "../ethereum/hex.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import { type FetchRange, lastFinal } from "./fetchRange.ts";
import type { ScannedLog } from "./scanLogs.ts";

/**
 * Final blocks at the end of a range that are requested again if they have no logs.
 * One of several machines behind a URL may lag, and then leaves out the end of a range.
 */
const MAX_FINAL_RECHECKS = 8;

/** Whether the block of this bloom may have logs of the filter. An empty bloom has none, even for a filter that matches any log. */
export const admitsLogs = (bloom: Uint8Array, filter: LogFilter): boolean =>
  bloom.some((byte) => byte !== 0) && bloomAdmits(bloom, filter);

/** Whether every log is of a canonical block. Blocks outside the block ring are not checked. */
export const areCanonical = (logs: readonly ScannedLog[], heads: Heads): boolean => {
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
export const coversRecent = (range: FetchRange, heads: Heads): boolean => {
  const last = lastFinal(range, heads);
  const from = last === undefined ? range.from : last + 1n;
  return from >= heads.oldest && range.to <= heads.latest.number;
};

/**
 * Finds blocks without logs whose bloom admits one; newest first.
 * It checks all recent blocks. Of final ones it checks those after the last log.
 */
export const findBlocksWithMissingLogs = (range: FetchRange, logs: readonly ScannedLog[], heads: Heads): bigint[] => {
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

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** Returns the hash of a node's block, or undefined if the node has no such block. */
export const readBlockHash = (block: unknown): string | undefined =>
  isObject(block) && isHash(block.hash) ? block.hash.toLowerCase() : undefined;

type Request = (method: string, params: readonly unknown[]) => Promise<unknown>;

const isUnsupported = (error: unknown): boolean =>
  error instanceof Error && "kind" in error && error.kind === "unsupportedMethod";

/**
 * Whether the node still has the data of a block: `[]` for a range below its prune horizon looks like a valid response.
 * It requests the block's receipts. If the node lacks that method, it requests the receipt of the first transaction.
 */
export const holdsBlock = async (request: Request, number: bigint): Promise<boolean> => {
  const quantity = formatQuantity(number);
  try {
    const receipts = await request("eth_getBlockReceipts", [quantity]);
    if (Array.isArray(receipts) && receipts.length > 0) {
      return true;
    }
    if (receipts === null) {
      return false;
    }
  } catch (error) {
    if (!isUnsupported(error)) {
      throw error;
    }
  }
  const block = await request("eth_getBlockByNumber", [quantity, false]);
  if (!isObject(block)) {
    return false;
  }
  const first: unknown = Array.isArray(block.transactions) ? block.transactions[0] : undefined;
  // A block without transactions has no data that could be missing.
  if (!isHash(first)) {
    return true;
  }
  return (await request("eth_getTransactionReceipt", [first])) !== null;
};
