import type { BlockId } from "../core/heads.ts";
import { type Node, UnverifiedError } from "../core/node.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import { type Hash, isData, parseData } from "../ethereum/hex.ts";
import type { Verifier } from "../verification/verifier.ts";
import type { FetchRange } from "./fetchRange.ts";
import { formatList, joinLogs } from "./mergeLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

/** Reads a block's verified receipts; `hash` is set if it is known. Returns undefined if no node has them. */
export type ReceiptsOf = (
  block: { readonly number: bigint; readonly hash?: Hash },
  context: RequestContext,
) => Promise<Uint8Array | undefined>;

export interface LogVerification {
  readonly verifier: Pick<Verifier, "level" | "check" | "bloomOf" | "verifiesReceipts">;
  readonly receiptsOf: ReceiptsOf;
}

/** Rejects with UnverifiedError if the logs are not those of their blocks. */
export type VerifyLogs = (
  node: Node,
  range: FetchRange,
  logs: readonly ScannedLog[],
  context: RequestContext,
) => Promise<void>;

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

/** Creates the check of one block's logs against its receipts, and of a range's logs against the blooms in the block ring. */
export const createVerifyLogs = ({ verifier, receiptsOf }: LogVerification): VerifyLogs => {
  const receiptsFor = (range: FetchRange, context: RequestContext): Promise<Uint8Array | undefined> | undefined =>
    range.from === range.to && range.isRecheck !== true && verifier.verifiesReceipts()
      ? receiptsOf(blockOf(range, context), context)
      : undefined;

  return async (node, range, logs, context) => {
    if (verifier.level !== "full") {
      return;
    }
    const receipts = await receiptsFor(range, context);
    const blooms = bloomsOf(logs, verifier, context);
    if (receipts === undefined && blooms.size === 0) {
      return;
    }
    const checks = { kind: "logs", filter: range.filter, blooms, receipts } as const;
    try {
      await verifier.check(node.name, formatList([joinLogs(logs)]), checks);
    } catch (error) {
      if (error instanceof UnverifiedError) {
        node.recordWrongAnswer?.(error);
      }
      throw error;
    }
  };
};
