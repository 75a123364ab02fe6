import type { Heads } from "../core/heads.ts";
import { bloomAdmits } from "../ethereum/bloom.ts";
import { formatQuantity, isHash } from "../ethereum/hex.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import type { FetchRange } from "./fetchRange.ts";
import type { ScannedLog } from "./scanLogs.ts";

/** Silent final blocks at the end of a range that are asked again: a machine behind the URL that lags leaves out the end. */
const MAX_FINAL_RECHECKS = 8;

/** An empty bloom admits nothing, not even to a filter that matches any log. */
export const admitsLogs = (bloom: Uint8Array, filter: LogFilter): boolean =>
  bloom.some((byte) => byte !== 0) && bloomAdmits(bloom, filter);

/** Whether every log is of a canonical block, as far as the ring reaches. */
export const areCanonical = (logs: readonly ScannedLog[], heads: Heads): boolean => {
  let checked = -1;
  return logs.every(({ block, hash }, at) => {
    if (block === checked) return hash === logs[at - 1]?.hash;
    checked = block;
    const known = heads.at(BigInt(block));
    return known === undefined || known.hash === hash;
  });
};

/** Whether the ring knows every block of the range: only then logs are proven by it. */
export const coversRange = ({ from, to }: FetchRange, { oldest, latest }: Heads): boolean =>
  from >= oldest && to <= latest.number;

/**
 * The blocks that gave no log though their bloom admits one, newest first. All of a recent range; of a final one those
 * behind its last log.
 */
export const findBlocksWithMissingLogs = (job: FetchRange, logs: readonly ScannedLog[], heads: Heads): bigint[] => {
  const silent: bigint[] = [];
  const loud = new Set(logs.map(({ block }) => block));
  const lastLoud = logs.at(-1)?.block ?? -1;
  for (let number = job.to; number >= job.from && number >= heads.oldest; number--) {
    if (job.final && (Number(number) <= lastLoud || silent.length >= MAX_FINAL_RECHECKS)) break;
    if (loud.has(Number(number))) continue;
    const block = heads.at(number);
    if (block !== undefined && admitsLogs(block.logsBloom, job.filter)) silent.push(number);
  }
  return silent;
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** The hash of a node's block answer, or undefined where it knows no such block. */
export const readBlockHash = (block: unknown): string | undefined =>
  isObject(block) && isHash(block.hash) ? block.hash.toLowerCase() : undefined;

type Read = (method: string, params: readonly unknown[]) => Promise<unknown>;

const isUnsupported = (error: unknown): boolean =>
  error instanceof Error && "kind" in error && error.kind === "unsupportedMethod";

/**
 * Whether the node still has the data of that block: `[]` for a range below its pruning point looks like an honest answer.
 * Its receipts say so; where it cannot give them by block, the receipt of the block's first transaction.
 */
export const holdsBlock = async (read: Read, number: bigint): Promise<boolean> => {
  const quantity = formatQuantity(number);
  try {
    const receipts = await read("eth_getBlockReceipts", [quantity]);
    if (Array.isArray(receipts) && receipts.length > 0) return true;
    if (receipts === null) return false;
  } catch (error) {
    if (!isUnsupported(error)) throw error;
  }
  const block = await read("eth_getBlockByNumber", [quantity, false]);
  if (!isObject(block)) return false;
  const first: unknown = Array.isArray(block.transactions) ? block.transactions[0] : undefined;
  // A block without transactions has nothing that could be missing.
  if (!isHash(first)) return true;
  return (await read("eth_getTransactionReceipt", [first])) !== null;
};
