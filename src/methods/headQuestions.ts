import type { Heads } from "../core/heads.ts";
import type { Question } from "../core/source.ts";
import { type BlockRead, questionAt } from "./blockReads.ts";
import { blockByNumber } from "./eth_getBlockByNumber.ts";
import { blockReceipts } from "./eth_getBlockReceipts.ts";
import type { Canonical } from "./reader.ts";
import { resolveBlock } from "./resolveBlock.ts";

const LATEST = { tag: "latest" } as const;
const BLOCK = 0;

/** What most ask of a new head: its receipts, and its block in both forms. */
export const headQuestions = (
  heads: Heads,
): { readonly receipts: Question; readonly block: Question; readonly fullBlock: Question } => {
  const at = (entry: BlockRead, ...rest: readonly Canonical[]) =>
    questionAt(entry, [LATEST.tag, ...rest], BLOCK, LATEST, resolveBlock(LATEST, heads));
  return { receipts: at(blockReceipts), block: at(blockByNumber, false), fullBlock: at(blockByNumber, true) };
};
