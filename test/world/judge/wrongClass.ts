import { isDeepStrictEqual } from "node:util";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { isAncestor } from "../chain/sealedBlock.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { type JudgedAnswer, outcomeOf } from "./outcome.ts";

export const WRONG_CLASSES = [
  /** True of another block of the chain, or of an older head. */
  "otherBlock",
  /** True of a block that the chain has left. */
  "orphaned",
  /** Some of the true logs, and no others. */
  "missingLogs",
  /** A true transaction or receipt, but not the requested one. */
  "wrongTransaction",
  /** `null` for what exists. */
  "nullForExisting",
  /** True of no block. */
  "forged",
] as const;

export type WrongClass = (typeof WRONG_CLASSES)[number];

type Item = Readonly<Record<string, unknown>>;
const itemOf = (value: unknown): Item => Object(value);
const BLOCK_PARAMETER = /^(0x[0-9a-f]{1,16}|latest|pending|safe|finalized|earliest)$/;
/** The classes of an answer that names several blocks, the worst first. */
const WORST = ["forged", "orphaned", "otherBlock"] as const;

/** Finds the class of an answer that no allowed view makes true. Heads that ended before `sinceMs` are not allowed. */
export const classOf = (chain: TruthChain, answer: JudgedAnswer, sinceMs: number): WrongClass => {
  const { call, result, endMs } = answer;
  if (result === undefined || result === null) {
    return "nullForExisting";
  }
  const heads = chain.headsBetween(sinceMs, endMs);
  if (
    call.method === "eth_getLogs" &&
    Array.isArray(result) &&
    findMissingLogs(chain, heads, call, result) !== undefined
  ) {
    return "missingLogs";
  }
  if (call.method.startsWith("eth_getTransactionBy") || call.method === "eth_getTransactionReceipt") {
    const found = classOfItem(chain, heads, result);
    return found === "otherBlock" ? "wrongTransaction" : found;
  }
  if (Array.isArray(result)) {
    const classes = result.map((item) => classOfItem(chain, heads, item));
    return WORST.find((each) => classes.includes(each)) ?? "otherBlock";
  }
  return typeof result === "object" ? classOfItem(chain, heads, result) : classOfValue(chain, heads, answer);
};

/** Finds the logs that a list lacks which has no others. Returns undefined if it has others for each head. */
export const findMissingLogs = (
  chain: TruthChain,
  heads: readonly TruthBlock[],
  call: ChainCall,
  result: readonly unknown[],
): readonly unknown[] | undefined => {
  for (const head of heads) {
    const truth = outcomeOf(chain, head, call);
    const logs = "result" in truth && Array.isArray(truth.result) ? truth.result : [];
    const missing = logs.filter((log) => !result.some((each) => isDeepStrictEqual(each, log)));
    if (missing.length > 0 && missing.length === logs.length - result.length) {
      return missing;
    }
  }
  return undefined;
};

/** Finds the class of a block, transaction, receipt or log, each of which names its block. */
const classOfItem = (chain: TruthChain, heads: readonly TruthBlock[], value: unknown): WrongClass => {
  const item = itemOf(value);
  const block = chain.block(item.blockHash ?? item.hash);
  if (block === undefined) {
    return "forged";
  }
  const known = [block.json, block.fullJson, ...block.transactions, ...block.receipts, ...block.logs];
  if (!known.some((each) => isDeepStrictEqual(each, value))) {
    return "forged";
  }
  return heads.some((head) => isAncestor(block, head)) ? "otherBlock" : "orphaned";
};

/** Finds the class of a value of the state, a number, or a count: it may be that of any block. */
const classOfValue = (
  chain: TruthChain,
  heads: readonly TruthBlock[],
  { call, result, endMs }: JudgedAnswer,
): WrongClass => {
  const atHead = {
    ...call,
    // The block is the last parameter of each of these methods.
    params: call.params.map((each, index) =>
      index === call.params.length - 1 && BLOCK_PARAMETER.test(String(each)) ? "latest" : each,
    ),
  };
  const isTrueOf = (block: TruthBlock): boolean => {
    const truth = outcomeOf(chain, block, atHead);
    return "result" in truth && isDeepStrictEqual(truth.result, result);
  };
  const found = chain.headsBetween(Number.NEGATIVE_INFINITY, endMs).filter(isTrueOf);
  if (found.length === 0) {
    return "forged";
  }
  return found.some((block) => heads.some((head) => isAncestor(block, head))) ? "otherBlock" : "orphaned";
};
