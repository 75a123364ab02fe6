import { isDeepStrictEqual } from "node:util";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { type JudgedAnswer, outcomeOf } from "./outcome.ts";
import { classOf, findMissingLogs, type WrongClass } from "./wrongClass.ts";

/** `lagMs`: how long the newest view with this response was over when the request began. */
export type Verdict =
  | { readonly kind: "true"; readonly lagMs: number }
  | { readonly kind: "error"; readonly text: string }
  /** `stale`: it was true before, but too long ago. */
  | { readonly kind: "stale" | "wrong"; readonly class: WrongClass; readonly text: string };

/** Older views only separate a stale answer from one that never was true. */
const STALE_MS = 60_000;
/** An execution of a flashblock ends within a block time. Until then the message before it is served. */
const EXECUTION_MS = 1_000;
/** `safe` and `finalized` are read every 12 s, after errors every 24 s, and it takes two origins. */
const FINALITY_MS = 60_000;

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => Object(value);

/** The fields of a pending log, block, transaction or receipt that do not depend on the hash of an unfinished block. */
const pendingForm = (method: string, value: unknown): unknown => {
  if (method === "eth_getLogs" && Array.isArray(value)) {
    return value.map((log) => {
      const { transactionHash, logIndex, blockNumber, topics } = fieldsOf(log);
      return { transactionHash, logIndex, blockNumber, topics };
    });
  }
  if (method === "eth_getBlockByNumber") {
    // An unverified message is served as the feed sent it, also with another gas.
    const { number, parentHash, transactions } = fieldsOf(value);
    const hashes = Array.isArray(transactions)
      ? transactions.map((each) => (typeof each === "string" ? each : fieldsOf(each).hash))
      : undefined;
    return { number, parentHash, hashes };
  }
  if (method === "eth_getTransactionByHash") {
    const { hash, blockNumber, input } = fieldsOf(value);
    return { hash, blockNumber, input };
  }
  if (method === "eth_getTransactionReceipt") {
    const { transactionHash, blockNumber, status, gasUsed, cumulativeGasUsed } = fieldsOf(value);
    return { transactionHash, blockNumber, status, gasUsed, cumulativeGasUsed };
  }
  return value;
};

const isPendingCall = ({ params }: ChainCall): boolean => JSON.stringify(params).includes('"pending"');
const isFinalityCall = ({ params }: ChainCall): boolean =>
  params.some((param) => param === "safe" || param === "finalized");
const isByTransaction = ({ method }: ChainCall): boolean =>
  method === "eth_getTransactionByHash" || method === "eth_getTransactionReceipt";

/** Whether a view whose head is this prefix of a pending block makes the answer true. */
const isTrueOfPrefix = (chain: TruthChain, prefix: TruthBlock, { call, result }: JudgedAnswer): boolean => {
  const form = (value: unknown) => pendingForm(call.method, value);
  if (isByTransaction(call)) {
    const index = prefix.hashes.indexOf(call.params[0] as `0x${string}`);
    const list = call.method === "eth_getTransactionByHash" ? prefix.transactions : prefix.receipts;
    return index !== -1 && isDeepStrictEqual(form(result), form(list[index]));
  }
  const truth = outcomeOf(chain, prefix, call);
  return "result" in truth && isDeepStrictEqual(form(result), form(truth.result));
};

const isTrueOfHead = (chain: TruthChain, head: TruthBlock, { call, result }: JudgedAnswer): boolean => {
  const truth = outcomeOf(chain, head, call);
  if ("missing" in truth) {
    return result === null;
  }
  // Before the sealed block replaces it, the pending block has the same transactions.
  return (
    isDeepStrictEqual(result, truth.result) ||
    (isPendingCall(call) && isDeepStrictEqual(pendingForm(call.method, result), pendingForm(call.method, truth.result)))
  );
};

/**
 * Decides from the record of the devnet whether an answer was true at some moment between request and response.
 * A view also counts if it ended before the request by no more than the allowed lag. `announcedMs` is the time of the
 * newest head that the same replica had shown before the request: an older view does not count.
 */
export const findVerdict = (chain: TruthChain, answer: JudgedAnswer, announcedMs?: number): Verdict => {
  const { call, error, result, startMs, endMs } = answer;
  if (error !== undefined) {
    return { kind: "error", text: `${error.code} ${error.message.replace(/0x[0-9a-f]+|\d+/g, "N")}` };
  }
  const isOfFinality = isFinalityCall(call);
  const maxLagMs = maxLagOf(chain, answer, announcedMs);
  const lagMs = findLag(chain, answer, maxLagMs);
  if (lagMs !== undefined) {
    return { kind: "true", lagMs: isOfFinality ? 0 : lagMs };
  }
  const heads = chain.headsBetween(startMs - maxLagMs, endMs);
  const views = heads.map(({ number, hash, logs }) => `${number} ${hash.slice(0, HASH_START)} (${logs.length})`);
  const prefixes = chain
    .prefixesBetween(startMs - maxLagMs, endMs)
    .map(({ number, hashes }) => `${number}: ${hashes.map((hash) => hash.slice(0, HASH_START)).join(" ")}`);
  const seen = `heads ${views.join(", ")}; feed ${prefixes.slice(0, MAX_PREFIXES).join(", ")}`;
  const times = `${Math.round(endMs - startMs)} ms, lag ${Math.round(maxLagMs)} ms`;
  const missing = Array.isArray(result) ? findMissingLogs(chain, heads, call, result) : undefined;
  const lacking = missing === undefined || call.method !== "eth_getLogs" ? "" : `lacks ${summarize(missing)}; has `;
  const text = `${call.method} ${JSON.stringify(call.params)}, ${times}: ${lacking}${summarize(result)}, with ${seen}`;
  const staleMs = findLag(chain, answer, STALE_MS);
  const found = classOf(chain, answer, startMs - maxLagMs);
  return staleMs === undefined
    ? { kind: "wrong", class: found, text }
    : { kind: "stale", class: found, text: `${Math.round(staleMs)} ms too late: ${text}` };
};

/** Returns for how long the view of an answer may have been over when its request began. */
const maxLagOf = (chain: TruthChain, { call, startMs, endMs }: JudgedAnswer, announcedMs = 0): number => {
  if (isFinalityCall(call)) {
    return chain.lagBound.since(startMs) + FINALITY_MS;
  }
  const ofExecution = isPendingCall(call) || isByTransaction(call) ? EXECUTION_MS : 0;
  return Math.min(chain.lagBound.ofAnswer(startMs, endMs) + ofExecution, Math.max(0, startMs - announcedMs));
};

/** Returns for how long the newest view that makes the answer true was over at its start. Undefined if no view makes it true. */
const findLag = (chain: TruthChain, answer: JudgedAnswer, maxLagMs: number): number | undefined => {
  const { call, startMs, endMs } = answer;
  const head = chain.headsBetween(startMs - maxLagMs, endMs).find((each) => isTrueOfHead(chain, each, answer));
  if (head !== undefined) {
    return Math.max(0, startMs - chain.replacedMs(head));
  }
  // A range of logs may end at the number of the pending block.
  if (!(isPendingCall(call) || isByTransaction(call) || call.method === "eth_getLogs")) {
    return undefined;
  }
  const prefixes = chain.prefixesBetween(startMs - maxLagMs, endMs);
  return prefixes.some((prefix) => isTrueOfPrefix(chain, prefix, answer)) ? 0 : undefined;
};

const HASH_START = 10;
const MAX_SUMMARY = 1_000;
const MAX_LOGS = 30;
const MAX_PREFIXES = 12;

/** Shortens hashes, and leaves out blooms. Of a log, only block, transaction and index remain. */
const summarize = (value: unknown): string => {
  if (Array.isArray(value) && fieldsOf(value[0]).topics !== undefined) {
    const logs = value.map((log) => {
      const { blockNumber, transactionHash, logIndex } = fieldsOf(log);
      return `${Number(blockNumber)}:${String(transactionHash).slice(0, HASH_START)}:${Number(logIndex)}`;
    });
    return `${logs.length} logs ${logs.slice(-MAX_LOGS).join(" ")}`;
  }
  return summarizeJson(value);
};

const summarizeJson = (value: unknown): string =>
  (JSON.stringify(value, (key, item: unknown) => (key === "logsBloom" ? undefined : item)) ?? "nothing")
    .replace(/0x[0-9a-f]{16,}/g, (hash) => hash.slice(0, HASH_START))
    .slice(0, MAX_SUMMARY);
