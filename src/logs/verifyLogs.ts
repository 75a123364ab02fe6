import type { BlockId } from "../core/heads.ts";
import { type Node, UnverifiedError } from "../core/node.ts";
import type { RequestContext } from "../core/rpcSource.ts";
import { type Hash, isData, parseData } from "../ethereum/hex.ts";
import type { Verifier } from "../verification/verifier.ts";
import type { FetchRange } from "./fetchRange.ts";
import { formatList, joinLogs } from "./mergeLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

/** The block whose receipts are wanted: `hash` where it is known. */
export type ReceiptsOf = (
  block: { readonly number: bigint; readonly hash?: Hash },
  context: RequestContext,
) => Promise<Uint8Array | undefined>;

export interface LogVerification {
  readonly verifier: Pick<Verifier, "level" | "check" | "bloomOf" | "provesReceipts">;
  /** Verified receipts of a block; undefined where no node gives them. */
  readonly receiptsOf: ReceiptsOf;
}

/** Rejects with UnverifiedError where the logs are not those of their blocks. */
export type VerifyLogs = (
  node: Node,
  job: FetchRange,
  logs: readonly ScannedLog[],
  context: RequestContext,
) => Promise<void>;

/** The node's logs are wrong: it is suspended, and the caller throws the error. */
export const wrongLogs = (node: Node): UnverifiedError => {
  const error = new UnverifiedError(node.name, "logs", true);
  node.recordWrongAnswer?.(error);
  return error;
};

/** Blocks of one answer whose blooms are looked at: a header that is not known yet is hashed first. */
const MAX_BLOOMS = 64;

/** The blooms of blocks that have logs here, as far as their headers are known, by the text of their hashes. */
const bloomsOf = (
  logs: readonly ScannedLog[],
  verifier: Pick<Verifier, "bloomOf">,
  { view }: RequestContext,
): Map<string, Uint8Array> => {
  const blooms = new Map<string, Uint8Array>();
  let last = "";
  let blocks = 0;
  for (const { block, hash } of logs) {
    if (hash === last) continue;
    last = hash;
    const known = view.heads.at(BigInt(block));
    if (known?.hash !== hash.toLowerCase() || blocks++ >= MAX_BLOOMS) continue;
    const bloom = verifier.bloomOf(known, view.heads);
    if (isData(bloom)) blooms.set(hash, parseData(bloom));
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

/** Logs of one block are held against its receipts; those of a range against the blooms of the blocks that the ring has. */
export const createVerifyLogs = ({ verifier, receiptsOf }: LogVerification): VerifyLogs => {
  const receiptsFor = (job: FetchRange, context: RequestContext): Promise<Uint8Array | undefined> | undefined =>
    job.from === job.to && job.isRecheck !== true && verifier.provesReceipts()
      ? receiptsOf(blockOf(job, context), context)
      : undefined;

  return async (node, job, logs, context) => {
    if (verifier.level !== "full") return;
    const receipts = await receiptsFor(job, context);
    const blooms = bloomsOf(logs, verifier, context);
    if (receipts === undefined && blooms.size === 0) return;
    const task = { kind: "logs", filter: job.filter, blooms, receipts } as const;
    try {
      await verifier.check(node.name, formatList([joinLogs(logs)]), task);
    } catch (error) {
      if (error instanceof UnverifiedError) node.recordWrongAnswer?.(error);
      throw error;
    }
  };
};
