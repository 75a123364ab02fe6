import { isDeepStrictEqual } from "node:util";
import { FakeError } from "../../support/fakes/fakeNode.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { answerCall } from "../chain/nodeAnswers.ts";
import type { SoakBlock } from "../chain/soakBlock.ts";
import type { SoakChain } from "../chain/soakChain.ts";

/** A response of forebay, with the times of its request and of its arrival. */
export interface SoakAnswer {
  readonly call: ChainCall;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string } | undefined;
  readonly startMs: number;
  readonly endMs: number;
}

/** `lagMs`: how long the newest view with this response was over when the request began. */
export type Verdict =
  | { readonly kind: "true"; readonly lagMs: number }
  | { readonly kind: "error"; readonly text: string }
  | { readonly kind: "wrong"; readonly text: string };

/**
 * The time in which forebay learns of a new head, also while a node is slow or lies.
 * An answer is true if a view of this time before the request, or of the time until the response, makes it true.
 */
export const MAX_LAG_MS = 3_000;
/** `safe` and `finalized` are read every 12 s. */
const MAX_FINALITY_LAG_MS = 12_000 + MAX_LAG_MS;

type Outcome = { readonly result: unknown } | { readonly missing: true };

const outcomeOf = (chain: SoakChain, head: SoakBlock, { method, params }: ChainCall): Outcome => {
  try {
    return { result: answerCall({ chain, head }, method, params) };
  } catch (error) {
    if (error instanceof FakeError) {
      return { missing: true };
    }
    throw error;
  }
};

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
    const { number, parentHash, gasUsed, transactions } = fieldsOf(value);
    const hashes = Array.isArray(transactions)
      ? transactions.map((each) => (typeof each === "string" ? each : fieldsOf(each).hash))
      : undefined;
    return { number, parentHash, gasUsed, hashes };
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
const isTrueOfPrefix = (chain: SoakChain, prefix: SoakBlock, { call, result }: SoakAnswer): boolean => {
  const form = (value: unknown) => pendingForm(call.method, value);
  if (isByTransaction(call)) {
    const index = prefix.hashes.indexOf(call.params[0] as `0x${string}`);
    const list = call.method === "eth_getTransactionByHash" ? prefix.transactions : prefix.receipts;
    return index !== -1 && isDeepStrictEqual(form(result), form(list[index]));
  }
  const truth = outcomeOf(chain, prefix, call);
  return "result" in truth && isDeepStrictEqual(form(result), form(truth.result));
};

const isTrueOfHead = (chain: SoakChain, head: SoakBlock, { call, result }: SoakAnswer): boolean => {
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

/** Decides from the record of the devnet whether an answer was true at some moment. */
export const judge = (chain: SoakChain, answer: SoakAnswer): Verdict => {
  const { call, error, result, startMs, endMs } = answer;
  if (error !== undefined) {
    return error.message === "Internal error"
      ? { kind: "wrong", text: error.message }
      : { kind: "error", text: `${error.code} ${error.message.replace(/0x[0-9a-f]+|\d+/g, "N")}` };
  }
  const isOfFinality = isFinalityCall(call);
  const heads = chain.headsBetween(startMs - (isOfFinality ? MAX_FINALITY_LAG_MS : MAX_LAG_MS), endMs);
  for (const head of heads) {
    if (isTrueOfHead(chain, head, answer)) {
      return { kind: "true", lagMs: isOfFinality ? 0 : Math.max(0, startMs - chain.replacedMs(head)) };
    }
  }
  // A range of logs may end at the number of the pending block.
  if (isPendingCall(call) || isByTransaction(call) || call.method === "eth_getLogs") {
    const prefixes = chain.prefixesBetween(startMs - MAX_LAG_MS, endMs);
    if (prefixes.some((prefix) => isTrueOfPrefix(chain, prefix, answer))) {
      return { kind: "true", lagMs: 0 };
    }
  }
  const views = heads.map(({ number, hash }) => `${number} ${hash.slice(0, 10)}`);
  const text = `${call.method} ${JSON.stringify(call.params)}: ${JSON.stringify(result)?.slice(0, 300)}`;
  return { kind: "wrong", text: `${text}, with heads ${views.join(", ")}` };
};
