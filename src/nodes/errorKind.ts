import type { LogsRefusal, NodeError, NodeErrorKind } from "../core/node.ts";
import { PRUNED_CODE, RETRY_RULES, retryCause } from "../core/retryPolicy.ts";

interface Rule {
  readonly kind: NodeErrorKind;
  readonly codes?: readonly number[];
  readonly statuses?: readonly number[];
  readonly message?: RegExp;
}

/**
 * Reads that execute nothing, and whose parameters forebay has parsed: hex, numbers, booleans and block tags. No text of a
 * client or of a contract can stand in their errors.
 */
export const PLAIN_READS: ReadonlySet<string> = new Set([
  "eth_blockNumber",
  "eth_chainId",
  "net_version",
  "eth_gasPrice",
  "eth_maxPriorityFeePerGas",
  "eth_blobBaseFee",
  "eth_baseFee",
  "eth_feeHistory",
  "eth_getBlockByNumber",
  "eth_getBlockByHash",
  "eth_getHeaderByNumber",
  "eth_getHeaderByHash",
  "eth_getBlockReceipts",
  "eth_getBlockTransactionCountByNumber",
  "eth_getBlockTransactionCountByHash",
  "eth_getTransactionByHash",
  "eth_getTransactionReceipt",
  "eth_getTransactionByBlockNumberAndIndex",
  "eth_getTransactionByBlockHashAndIndex",
  "eth_getBalance",
  "eth_getCode",
  "eth_getStorageAt",
  "eth_getStorageValues",
  "eth_getTransactionCount",
  "eth_getProof",
  "eth_getLogs",
]);

/** Whether the error of a call may quote the client's parameters, or a text of a contract that it executed. */
export const mayQuote = (method: string): boolean => !PLAIN_READS.has(method);

/**
 * Error texts and codes of nodes. An error that no rule knows is the fault of the node (`other`), and is tried on other nodes. The
 * client's faults, which every node would report, are `revert`, `rejected`, `executionFailed`, `invalidParams`, and
 * `unsupportedMethod` if all nodes say so. The first rule that matches names the kind. The order matters, because a code has several
 * meanings. Code -32005 is a rate limit or too many results. Code -32602 is malformed params or a range that is too wide.
 * Source: docs/reference/providers.md.
 */
const RULES: readonly Rule[] = [
  // A revert reason or a method name may contain any text, so these rules precede those about the node.
  { kind: "revert", codes: [3], message: /^execution reverted/i },
  { kind: "unsupportedMethod", codes: [-32601] },
  // execution-apis: data that the node has pruned, and a block that has no such data in any node.
  { kind: "missingData", codes: [PRUNED_CODE] },
  { kind: "invalidParams", codes: [4445] },
  // The OP-stack sequencer limits the sender of the transaction. Another node would return the same error.
  { kind: "rejected", message: /sender is over rate limit/i },
  { kind: "billing", statuses: [402] },
  {
    kind: "billing",
    message: /free tier.*(reached|exceeded)|reached the free tier|monthly capacity|payment required/i,
  },
  { kind: "rateLimited", statuses: [429] },
  { kind: "rateLimited", codes: [429, -32009, -32604] },
  {
    kind: "rateLimited",
    message: /too many requests|rate.?limit|has exceeded .* rate|request rate|throttl|server busy/i,
  },
  // Data that the plan does not include is data that this node does not have.
  {
    kind: "missingData",
    message:
      /archive.*(require|upgrade|not (available|supported|included|allowed)|only)|(require|upgrade|enable)\w* .*archive/i,
  },
  {
    kind: "tooLarge",
    message:
      /block range (limit|is too|too|exceeds|greater|is larger|should work)|too wide blocks? range|exceeds? (limit of|max|maximum)|limited to (a |0 - )?[\d,]+k?|log response size|returned more than|too many logs|requested too many blocks|ranges? over|range is too large|max(imum)? (range|allowed|block range|of \d+ blocks|\[from, to\])|allowed for your plan|narrow your filter|query timeout|response (is too big|size|too large)|response too large|reducing your block range|current limit is|up to a [\d,]+k? block|must be smaller than|at most [\d,]+ blocks|threshold exceeded|max logs per response/i,
  },
  { kind: "tooLarge", codes: [-32614, -32701, -32702, -32008, -32012, -32020] },
  { kind: "tooLarge", statuses: [413] },
  {
    kind: "tagUnsupported",
    message:
      /pending block is not available|(safe|finalized) block not found|(safe|finalized|pending) is not a? ?supported|pending logs are not supported/i,
  },
  {
    kind: "missingData",
    message:
      /missing trie node|header (for hash )?not found|beyond (current )?head block|unknown block|block not found|block .*could not be found|no historical rpc|prun(ed|ing)|no state available|data before .* is not available|receipts? (is |are )?not available|neither stored nor reproducible|transaction indexing is in progress|historical state .*(not|un)available|state (is )?not available|state .* is not available|required historical state|resource not found|history .*(not|un)available|could not find block|block ?out ?of ?range/i,
  },
  { kind: "missingData", codes: [-32014] },
  { kind: "timeout", statuses: [408, 504] },
  { kind: "timeout", message: /timed? ?out|deadline exceeded|context canceled/i },
  { kind: "revert", message: /execution reverted|^reverted|vm exception while processing/i },
  {
    kind: "rejected",
    message:
      /already known|nonce too (low|high)|insufficient funds|underpriced|known transaction|intrinsic gas too low|exceeds block gas limit|already imported|invalid (sender|chain ?id|signature)|transaction type not supported|only replay-protected|max (initcode|code) size exceeded|tx fee .* exceeds the configured cap|oversized data/i,
  },
  // Texts of geth's core/vm/errors.go and core/error.go, of reth, and of Nethermind.
  {
    kind: "executionFailed",
    codes: [-32015],
    message:
      /out ?of ?gas|gas (uint64 )?overflow|gas required exceeds|invalid (opcode|jump)|bad (instruction|jump)|stack (underflow|overflow|limit)|write protection|return data out of bounds|call depth|address collision|insufficient balance for transfer|nonce uint64 overflow|invalid code: must not|(fee|gas|tip) cap|fee per gas (less|higher)|gas limit reached|^evm error|vm execution error/i,
  },
  {
    kind: "invalidParams",
    message:
      /invalid (argument|param|hex|address|length|type\b|number|filter|block range)|cannot unmarshal|missing (value for )?required|hex string|filter not found|exceed max (addresses|topics)|unknown field|genesis is not traceable|tracer not found|is not defined/i,
  },
  { kind: "unsupportedMethod", codes: [-32004] },
  {
    kind: "unsupportedMethod",
    message: /method .*(not found|does not exist|not supported|not available|not whitelisted)/i,
  },
  { kind: "unauthorized", statuses: [401, 403] },
  { kind: "unauthorized", codes: [-32016] },
  {
    kind: "unauthorized",
    message:
      /unauthori[sz]ed|unauthenticated|(invalid|missing|disabled|unknown) api.?key|api.?key .*(invalid|disabled|expired|missing|required|not (found|valid|allowed))|forbidden|must be authenticated|does not have access|access denied/i,
  },
  {
    kind: "billing",
    message:
      /quota|(daily|monthly) (request |usage |credit )?(limit|count|cap)|(your|current|free|paid) (plan|tier|subscription)|budget exhausted|out of credits/i,
  },
  {
    kind: "rateLimited",
    message: /compute units|(per|a).?(second|minute)|request limit|capacity exceeded|exceeded .*capacity|at capacity/i,
  },
  {
    kind: "unreachable",
    message:
      /no .*(server|backend|upstream|node|provider)s? .*(available|healthy)|too much load|overloaded|(temporarily|service|currently) unavailable|server is busy/i,
  },
];

/** Few texts say more than this code does. */
const INVALID_PARAMS = -32602;
const KINDS_OF_INVALID_PARAMS: ReadonlySet<NodeErrorKind> = new Set([
  "tooLarge",
  "tagUnsupported",
  "missingData",
  "unauthorized",
]);

/** The kinds that count against a node, and that a text can name. */
const NODE_FAULTS: ReadonlySet<NodeErrorKind> = new Set(["billing", "rateLimited", "unauthorized", "unreachable"]);

/**
 * Classifies a node's error. `code` is undefined if the node returned no JSON-RPC error. `isQuoting`: the text may hold text of a
 * client or of a contract, so only code and HTTP status can count against the node.
 */
export const errorKind = (
  code: number | undefined,
  message: string,
  httpStatus: number,
  isQuoting: boolean,
): NodeErrorKind => {
  const rule = RULES.find(
    ({ kind, codes, statuses, message: pattern }) =>
      ((code !== undefined && codes?.includes(code)) ||
        statuses?.includes(httpStatus) ||
        (pattern?.test(message) && !(isQuoting && NODE_FAULTS.has(kind)))) &&
      (code !== INVALID_PARAMS || statuses?.includes(httpStatus) || KINDS_OF_INVALID_PARAMS.has(kind)),
  );
  if (rule) {
    return rule.kind;
  }
  if (code === undefined || httpStatus >= 500) {
    return httpStatus >= 500 ? "unreachable" : "invalidAnswer";
  }
  if (code === INVALID_PARAMS) {
    return "invalidParams";
  }
  // EIP-1474: "limit exceeded". jsonrpsee uses the code for unsupported batches.
  return code === -32005 && !/batch/i.test(message) ? "rateLimited" : "other";
};

/**
 * Texts with which nodes refuse a request for logs, by what is too large. The first that matches decides: texts about the response
 * name a range too. Source: docs/reference/providers.md, Log ranges and results.
 */
const LOGS_REFUSALS: readonly (readonly [LogsRefusal, RegExp])[] = [
  ["lists", /exceed max (addresses|topics)|query contains [\d,]+ filters/i],
  [
    "size",
    /log response size|response size (should|is|too)|response (is too big|too large)|returned more than|max results|too many logs|narrow your filter|max logs per response|logs matched by query|must be smaller than size|query time(d )?out|request timed out|execution timeout/i,
  ],
  [
    "width",
    /block range|blocks? range|blocks distance|too many blocks|(range|limited to|ranges over|query to at most|up to an?) [\d,x]+|limited to (a|an) |range allowed for your plan|max range|number of requested blocks|range (is )?too (wide|large|big)|maximum of \d+ blocks|threshold exceeded/i,
  ],
];

/** The kinds of errors that such a text can have. */
const REFUSING: ReadonlySet<NodeErrorKind> = new Set(["tooLarge", "timeout", "invalidParams", "other"]);
/** Errors of parameters, which name a range too. */
const INVALID_RANGE = /invalid block range/i;

/** Returns what of a request for logs a node refused as too large; undefined for another error. */
export const logsRefusal = (kind: NodeErrorKind, text: string): LogsRefusal | undefined => {
  if (!REFUSING.has(kind) || INVALID_RANGE.test(text)) {
    return undefined;
  }
  const [refusal] = LOGS_REFUSALS.find(([, pattern]) => pattern.test(text)) ?? [];
  return refusal ?? (kind === "tooLarge" ? "size" : undefined);
};

/** Texts of geth, reth and Erigon; of Nethermind; of Besu; of OpenEthereum. */
const KNOWN_TRANSACTION = /already ?known|known transaction|already imported|already exists/i;

/** Whether the node says that it has the transaction already. */
export const isKnownTransaction = ({ kind, message }: NodeError): boolean =>
  kind === "rejected" && KNOWN_TRANSACTION.test(message);

const REJECTIONS: ReadonlySet<NodeErrorKind> = new Set(["billing", "rateLimited", "unauthorized"]);

/** Classifies a reply that is not JSON and has the status 200. Its text can only show that the node rejects its user. */
export const plainTextKind = (text: string, isQuoting: boolean): NodeErrorKind => {
  const kind = errorKind(undefined, text, 200, isQuoting);
  return REJECTIONS.has(kind) ? kind : "invalidAnswer";
};

const FAULTS: ReadonlySet<NodeErrorKind> = new Set(["timeout", "unreachable", "invalidAnswer"]);

/** Whether the breaker counts the error, because the node caused it and not the request. A timeout that the node reports does not count. */
export const isFault = ({ kind, text }: NodeError): boolean => FAULTS.has(kind) && !(kind === "timeout" && text);

/** Whether the same request may succeed on another node. */
export const isRetryable = (error: NodeError): boolean => RETRY_RULES[retryCause(error)].pool !== "never";

/** Whether the same request may succeed on the same node after a delay. */
export const isTransient = (error: NodeError): boolean => RETRY_RULES[retryCause(error)].pool === "sameNodeLater";

const MAX_TEXT = 200;

/** The facts of an error for a log line. */
export const factsOf = ({ kind, code, message, reply }: NodeError) => ({
  cause: kind,
  code,
  ...(reply && { status: reply.status }),
  text: (reply?.text ?? message).slice(0, MAX_TEXT),
});

/** The cause of an error as text, without the words of the node, which may name an account. */
export const reasonOf = (error: NodeError): string => {
  const { meaning } = RETRY_RULES[retryCause(error)];
  const { reply } = error;
  return reply === undefined ? meaning : `${meaning} (HTTP status ${reply.status}, code ${error.code})`;
};
