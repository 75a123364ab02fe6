import type { BlockId } from "../core/heads.ts";
import { type Node, UnverifiedError } from "../core/node.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import { type Hash, isData, isHash, parseData } from "../ethereum/hex.ts";
import type { Verifier } from "../verification/verifier.ts";
import type { FetchRange } from "./fetchRange.ts";
import { formatList, joinLogs } from "./mergeLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

/** Reads a block's verified receipts; `hash` is set if it is known. Returns undefined if no node has them. */
export type ReceiptsOf = (
  block: { readonly number: bigint; readonly hash?: Hash },
  context: RequestContext,
) => Promise<Uint8Array | undefined>;

/** Reads the fields of a block by its hash, verified. Returns undefined if no node has it. */
export type HeaderOf = (hash: Hash, context: RequestContext) => Promise<Readonly<Record<string, unknown>> | undefined>;

export interface LogVerification {
  readonly verifier: Pick<Verifier, "level" | "check" | "bloomOf" | "verifiesReceipts">;
  readonly receiptsOf: ReceiptsOf;
  readonly headerOf: HeaderOf;
}

/** Returns whether receipts have verified the logs. Rejects with UnverifiedError if the logs are not those of their blocks. */
export type VerifyLogs = (
  node: Node,
  range: FetchRange,
  logs: readonly ScannedLog[],
  context: RequestContext,
) => Promise<boolean>;

/** Records that the node's logs are wrong, which suspends it. Returns the error for the caller to throw. */
export const wrongLogs = (node: Node): UnverifiedError => {
  const error = new UnverifiedError(node.name, "logs", true);
  node.recordWrongAnswer?.(error);
  return error;
};

/** Limit of the blocks whose blooms one response is compared with: a new header is hashed first. */
const MAX_BLOOMS = 64;

/** Returns the blooms of blocks with logs, by block hash. Blocks outside the block ring are left out. */
const bloomsOf = (
  logs: readonly ScannedLog[],
  verifier: Pick<Verifier, "bloomOf">,
  { view }: RequestContext,
): Map<string, Uint8Array> => {
  const blooms = new Map<string, Uint8Array>();
  let last = "";
  let blocks = 0;
  for (const { block, hash } of logs) {
    if (hash === last) {
      continue;
    }
    last = hash;
    const header = view.heads.at(BigInt(block));
    if (header?.hash !== hash.toLowerCase() || blocks++ >= MAX_BLOOMS) {
      continue;
    }
    const bloom = verifier.bloomOf(header, view.heads);
    if (isData(bloom)) {
      blooms.set(hash, parseData(bloom));
    }
  }
  return blooms;
};

const blockOf = (
  { from, blockHash }: FetchRange,
  { view }: RequestContext,
): Partial<BlockId> & Pick<BlockId, "number"> => {
  const hash = blockHash ?? view.heads.at(from)?.hash;
  return hash === undefined ? { number: from } : { number: from, hash };
};

/** The values with which the logs of a response are compared. */
interface KnownLogs {
  readonly receipts: Uint8Array | undefined;
  /** By block hash. */
  readonly blooms: ReadonlyMap<string, Uint8Array>;
}

/** Returns undefined if the value cannot be read now: then it cannot verify anything. */
const ifReadable = async <T>(reading: Promise<T>, { signal }: RequestContext): Promise<T | undefined> => {
  try {
    return await reading;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
};

/** Reads the block's receipts. If no node has them, and the block ring does not have the block, reads its header for the bloom. */
const readKnownLogs = async (
  { verifier, receiptsOf, headerOf }: LogVerification,
  range: FetchRange,
  logs: readonly ScannedLog[],
  context: RequestContext,
): Promise<KnownLogs> => {
  const isOneBlock = range.from === range.to && range.isRecheck !== true && verifier.verifiesReceipts();
  const receipts = isOneBlock ? await receiptsOf(blockOf(range, context), context) : undefined;
  const blooms = bloomsOf(logs, verifier, context);
  const hash = logs[0]?.hash;
  if (!isOneBlock || receipts !== undefined || blooms.size > 0 || !isHash(hash)) {
    return { receipts, blooms };
  }
  const bloom = (await ifReadable(headerOf(hash, context), context))?.logsBloom;
  return { receipts, blooms: isData(bloom) ? new Map([[hash, parseData(bloom)]]) : blooms };
};

/** Compares logs with what is known of their blocks. Records a wrong node, and rejects with UnverifiedError. */
export const checkAgainst = async (
  verifier: LogVerification["verifier"],
  node: Node,
  logs: readonly ScannedLog[],
  known: KnownLogs & Pick<FetchRange, "filter">,
): Promise<void> => {
  try {
    await verifier.check(node.name, formatList([joinLogs(logs)]), { kind: "logs", ...known });
  } catch (error) {
    if (error instanceof UnverifiedError) {
      node.recordWrongAnswer?.(error);
    }
    throw error;
  }
};

/** Creates the check of one block's logs against its receipts or bloom, and of a range's logs against the blooms in the block ring. */
export const createVerifyLogs =
  (verification: LogVerification): VerifyLogs =>
  async (node, range, logs, context) => {
    const { verifier } = verification;
    if (verifier.level !== "full") {
      return false;
    }
    const { receipts, blooms } = await readKnownLogs(verification, range, logs, context);
    if (receipts === undefined && blooms.size === 0) {
      return false;
    }
    await checkAgainst(verifier, node, logs, { filter: range.filter, blooms, receipts });
    return receipts !== undefined;
  };
