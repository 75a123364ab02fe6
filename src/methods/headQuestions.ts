import type { Heads } from "../core/heads.ts";
import type { Question } from "../core/source.ts";
import { type BlockRead, questionAt } from "./blockReads.ts";
import { blockByNumber } from "./eth_getBlockByNumber.ts";
import { blockReceipts } from "./eth_getBlockReceipts.ts";
import type { Canonical } from "./reader.ts";
import { resolveBlock } from "./resolveBlock.ts";

const LATEST = { tag: "latest" } as const;
const BLOCK = 0;

/** Returns the most frequent requests for a new head, for the head prefetch: its receipts, and its block in both forms. */
export const headQuestions = (
  heads: Heads,
): { readonly receipts: Question; readonly block: Question; readonly fullBlock: Question } => {
  const block = resolveBlock(LATEST, heads);
  const requestAt = (entry: BlockRead, ...rest: readonly Canonical[]) =>
    questionAt({ entry, values: [LATEST.tag, ...rest], position: BLOCK, parameter: LATEST }, block);
  return {
    receipts: requestAt(blockReceipts),
    block: requestAt(blockByNumber, false),
    fullBlock: requestAt(blockByNumber, true),
  };
};
