import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError, type NodeErrorKind } from "../../src/core/node.ts";
import { isMissingBlock } from "../../src/core/retryPolicy.ts";
import { isInTable } from "../../src/methods/handlers.ts";
import { errorKind, isFault, isRetryable, mayQuote, PLAIN_READS, plainTextKind } from "../../src/nodes/errorKind.ts";

/** Errors of nodes and providers (docs/reference/providers.md): code, message, HTTP status. */
const CASES: Record<string, readonly [number | undefined, string, number?][]> = {
  tooLarge: [
    [-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit"],
    [
      -32600,
      "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x1, 0xa]",
    ],
    [-32000, "Query timeout exceeded. Consider reducing your block range"],
    [-32005, "query returned more than 10000 results. Try with this block range [0x1, 0x2]."],
    [-32614, "eth_getLogs is limited to a 10,000 range", 413],
    [-32000, "please limit the query to at most 1000 blocks"],
    [-32000, "block range too large"],
    [-32602, "Block range limit exceeded. See more details at https://docs#evm-range-limits"],
    [-32600, "block range is too wide"],
    [-32600, "maximum [from, to] blocks distance: 1000"],
    [35, "ranges over 10000 blocks are not supported on freetier"],
    [-32000, "query returns too many logs, narrow your filter: 20000"],
    [-32000, "query exceeds max results 20000"],
    [-32000, "requested too many blocks from 1 to 9, maximum is set to 5"],
    [-32701, "exceed maximum block range: 50000"],
    [-32602, "eth_getLogs is limited to 0 - 50 blocks range"],
    [-32602, "response size should not greater than 10000000 bytes"],
    [-32000, "exceeds the range allowed for your plan (100 > 50)"],
    [-32000, "limited to 1024 block"],
    [-32000, "Max range: 800"],
    [-32000, "Maximum allowed number of requested blocks is 1000"],
    [-32000, "too wide blocks range, the limit is 100"],
    [-32000, "eth_getLogs range is too large, max is 1k blocks"],
    [-32000, "query must be smaller than size 1024"],
    [-32602, "query exceeds max block range 100000"],
    [-32602, "query exceeds max results 20000, retry with the range 1-5"],
    [-32008, "Response is too big"],
    [-32005, "Too many logs requested. Max logs per response is 20000."],
    [-32000, "logs matched by query exceeds limit of 10000"],
    [-32020, "backend response too large"],
    [-32000, "allowed block range threshold exceeded"],
    [-32000, "block range is larger than max block range"],
    [-32000, "block range greater than 1000 max"],
    [-32000, "block range exceeds 1000"],
  ],
  billing: [
    [-32000, "Monthly capacity limit exceeded. Visit https://dashboard to upgrade"],
    [-32000, "you have reached the free tier limit"],
    [undefined, "<html>", 402],
    [-32001, "Exceeded the quota usage"],
    [-32000, "daily request limit reached"],
    [-32000, "You have reached the limit for your current plan"],
    [-32000, "please upgrade your plan"],
  ],
  rateLimited: [
    [undefined, "<html>", 429],
    [429, "Your app has exceeded its compute units per second capacity"],
    [-32005, "project ID request rate exceeded"],
    [-32005, "limit exceeded"],
    [-32000, "Too many requests"],
    [-32009, "Server is busy, try again later"],
    [-32600, "Your app has exceeded its compute units per second capacity"],
    [-32000, "capacity exceeded"],
    [-32007, "50/second request limit reached"],
  ],
  tagUnsupported: [
    [-32000, "pending block is not available"],
    [-39001, "safe block not found"],
    [-32602, "finalized is not a supported commitment level"],
    [-32000, "pending logs are not supported"],
  ],
  missingData: [
    [-32000, "missing trie node 00ab (path ) state 0x is not available, not found"],
    [-32000, "header not found"],
    [-32000, "header for hash not found"],
    [-32000, "unknown block"],
    [-32602, "block range extends beyond current head block: requested 105, head 103"],
    [-32000, "request beyond head block: requested 1, head 0"],
    [-32000, "no historical RPC is available for this historical (pre-bedrock) execution request"],
    [4444, "pruned history unavailable"],
    [4444, "any text"],
    [-32000, "getReceipt error: ReceiptsGen: PrepareEnv: bn=5, old data not available due to pruning"],
    [-32000, "seek with txNum=19 but data before txNum=26 is not available: blockNum=5, txNum=19"],
    [-32001, "Receipt not available for 'From' block '11052984'."],
    [-32001, "Block 0x12 could not be found"],
    [-32002, "No state available for block 5 (0x12)"],
    [-32602, "Receipts for block 5 (0x12) are neither stored nor reproducible from state history."],
    [-32000, "transaction indexing is in progress"],
    [-32000, "required historical state unavailable (reexec=128)"],
    [-32602, "Archive requests require a personal token"],
    [-32000, "please upgrade your plan for archive data"],
  ],
  timeout: [
    [-32002, "request timed out"],
    [-32000, "execution aborted (timeout = 5s)"],
    [undefined, "<html>", 504],
  ],
  revert: [
    [3, "execution reverted: no"],
    [3, "execution reverted: too many requests"],
    [-32000, "execution reverted: pruned"],
    [-32000, "execution reverted"],
    [-32015, "VM Exception while processing transaction: revert"],
  ],
  rejected: [
    [-32000, "already known"],
    [-32000, "nonce too low: next nonce 5, tx nonce 4"],
    [-32003, "insufficient funds for gas * price + value"],
    [-32000, "replacement transaction underpriced"],
    [-32017, "sender is over rate limit"],
  ],
  unsupportedMethod: [
    [-32601, "the method foo does not exist/is not available"],
    [-32004, "Unsupported"],
    [-32601, "the method eth_rateLimit does not exist"],
  ],
  unauthorized: [
    [undefined, "<html>", 401],
    [-32016, "bad key"],
    [-32000, "Unauthenticated"],
    [-32600, "project ID does not have access to this network"],
    [-32051, "API key disabled, reason: Api key budget exhausted"],
  ],
  unreachable: [
    [undefined, "<html>", 503],
    [undefined, "", 500],
    [-32000, "the node is under too much load"],
    [-32603, "No server available"],
    [-32011, "no backend is currently healthy to serve traffic"],
  ],
  invalidAnswer: [[undefined, "", 200]],
  invalidParams: [
    [-32602, "invalid argument 0: hex string has length 3, want 40 for common.Address"],
    [-32602, "invalid block range params"],
    [-32602, 'invalid value: string "too many requests: timed out", expected an address'],
    [-32000, "invalid argument 1: json: cannot unmarshal object into Go value of type string"],
    [-32000, "filter not found"],
  ],
  executionFailed: [
    [-32000, "out of gas"],
    [-32000, "gas required exceeds allowance (50000000)"],
    [-32000, "stack underflow (0 <=> 1)"],
    [-32000, "max fee per gas less than block base fee"],
    [-32015, "VM execution error."],
  ],
  other: [
    [-32005, "batch requests are not supported"],
    [-32603, "internal error"],
    [-32000, "limit exceeded"],
    [-32000, "cannot fulfill request"],
    [-32600, "invalid request"],
  ],
};

for (const [kind, cases] of Object.entries(CASES)) {
  test(`errors of nodes have the kind ${kind}`, () => {
    for (const [code, message, status = 200] of cases) {
      assert.equal(errorKind(code, message, status, false), kind as NodeErrorKind, `${code} ${message}`);
    }
  });
}

/** Errors of real nodes that hold a text of a client or of a contract: the method, the code and the message. */
const QUOTES: Record<string, (text: string) => readonly [string, number, string]> = {
  "an unknown field (reth, anvil)": (text) => [
    "trace_filter",
    -32602,
    `unknown field \`${text}\`, expected one of \`fromBlock\``,
  ],
  "an argument of another type (geth)": (text) => ["debug_traceCall", -32602, `invalid argument 2: "${text}"`],
  "a tracer that throws (geth)": (text) => [
    "debug_traceTransaction",
    -32000,
    `${text} at result (<eval>:1:58(3))    in server-side tracer function 'result'`,
  ],
  "an unknown tracer (geth)": (text) => [
    "debug_traceBlockByNumber",
    -32000,
    `ReferenceError: ${text} is not defined at <eval>:1:1(0)`,
  ],
  "a revert (geth)": (text) => ["eth_call", 3, `execution reverted: ${text}`],
  "a revert without a code of its own (Nethermind)": (text) => ["eth_estimateGas", -32015, `Reverted ${text}`],
  "an internal error of a call (reth)": (text) => ["eth_call", -32603, `EVM error: ${text}`],
  "a simulation": (text) => ["eth_simulateV1", -32000, `err: ${text} (supplied gas 50000000)`],
  "a method outside the table": (text) => ["custom_method", -32000, text],
};

const COUNTED: readonly NodeErrorKind[] = ["billing", "rateLimited", "unauthorized", "unreachable", "invalidAnswer"];

for (const [name, quote] of Object.entries(QUOTES)) {
  test(`no text of an error counts against the node if it is inside ${name}`, () => {
    for (const [kind, cases] of Object.entries(CASES)) {
      for (const [, text] of cases) {
        const [method, code, message] = quote(text);
        const found = errorKind(code, message, 200, mayQuote(method));
        assert.ok(!COUNTED.includes(found), `${kind}: ${message} is ${found}`);
        assert.equal(isFault(new NodeError(found, "node1", message, { text: Buffer.from("{}") })), false, message);
      }
    }
  });
}

test("an HTTP status and a code count against the node, whatever the call", () => {
  const statuses: Record<string, number> = { billing: 402, rateLimited: 429, unauthorized: 401, unreachable: 503 };
  for (const [kind, status] of Object.entries(statuses)) {
    assert.equal(errorKind(-32000, "no", status, true), kind as NodeErrorKind);
    assert.equal(errorKind(-32602, "no", status, true), kind as NodeErrorKind);
  }
  for (const code of [429, -32009, -32604, -32005]) {
    assert.equal(errorKind(code, "no", 200, true), "rateLimited");
  }
  assert.equal(errorKind(-32016, "no", 200, true), "unauthorized");
});

test("all reads whose errors quote nothing are methods of the table", () => {
  assert.deepEqual(
    [...PLAIN_READS].filter((method) => !isInTable(method)),
    [],
  );
});

test("the text of a page names a rejection of the node's user, and nothing else", () => {
  assert.equal(plainTextKind("<html>Too many requests</html>", false), "rateLimited");
  assert.equal(plainTextKind("daily request limit reached", false), "billing");
  assert.equal(plainTextKind("execution reverted", false), "invalidAnswer");
  assert.equal(plainTextKind("daily request limit reached", true), "invalidAnswer");
  assert.equal(plainTextKind("<html>", false), "invalidAnswer");
});

test("errors of the client are not retried", () => {
  const isRetried = (kind: NodeErrorKind) => isRetryable(new NodeError(kind, "node1", "failed"));
  for (const kind of ["revert", "rejected", "tooLarge", "executionFailed", "invalidParams", "cancelled"] as const) {
    assert.equal(isRetried(kind), false);
  }
  for (const kind of ["unreachable", "other"] as const) {
    assert.equal(isRetried(kind), true);
  }
});

test("the error of a missing block does not mean pruned data", () => {
  assert.equal(isMissingBlock("header not found"), true);
  assert.equal(isMissingBlock("Resource not found"), true);
  assert.equal(isMissingBlock("missing trie node 00ab (path ) state 0x is not available, not found"), false);
});
