import type { Heads } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { parsedResult, type RpcRequest } from "../core/rpcSource.ts";
import { isHash, isQuantity, type Quantity, ZERO_HASH } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter, matchesLog } from "../ethereum/logFilter.ts";
import { formatJson, isFields } from "../json/jsonBytes.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { MethodInput } from "./method.ts";

interface NodeLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly blockNumber: Quantity;
}

const isAbove = (log: unknown, heads: Heads): log is NodeLog =>
  isFields(log) &&
  typeof log.address === "string" &&
  Array.isArray(log.topics) &&
  isQuantity(log.blockNumber) &&
  BigInt(log.blockNumber) > heads.latest.number;

/** Errors of a node that has pending logs, or may have them. With any other error, as geth returns it, there are none. */
const FAULTS: ReadonlySet<NodeErrorKind> = new Set([
  "timeout",
  "unreachable",
  "rateLimited",
  "otherBranch",
  "invalidAnswer",
]);

const NOTHING = { result: undefined, node: undefined } as const;

/** Reads a result at `pending` from a node. Without one, the node rejects `pending`. */
const readPending = async (
  { chain, context }: MethodInput,
  call: Call,
  request: Pick<RpcRequest, "canonicalParams" | "onlyNode">,
): Promise<{ readonly result: unknown; readonly node: string | undefined }> => {
  try {
    const response = await chain.reads.request({ ...call, ...request, retention: "never" }, context);
    return { result: parsedResult(response), node: response.node };
  } catch (error) {
    if (error instanceof NodeError && !FAULTS.has(error.kind)) {
      return NOTHING;
    }
    throw error;
  }
};

/** Reads the pending block of the node that gave the logs. Another node may have another head. */
const readPendingBlock = async (input: MethodInput, node: string | undefined): Promise<unknown> => {
  const call = createCall("eth_getBlockByNumber", ["pending", false]);
  const owner = node === undefined ? undefined : { onlyNode: node };
  return (await readPending(input, call, { canonicalParams: node ?? "", ...owner })).result;
};

/** Some clients return a pending block without a parent, or with a zero hash. */
const isKnownHash = (hash: unknown): boolean => isHash(hash) && hash !== ZERO_HASH;

/**
 * Whether a pending block is the child of the head, or at or below it: then no block between them is left out.
 * A pending block without a known parent is the child of the head if its number is the next one.
 */
const continuesHead = (block: unknown, { latest }: Heads): boolean => {
  if (!isFields(block) || !isQuantity(block.number)) {
    return true;
  }
  const number = BigInt(block.number);
  const { parentHash } = block;
  return (
    number <= latest.number ||
    (number === latest.number + 1n && (parentHash === latest.hash || !isKnownHash(parentHash)))
  );
};

const notContinued = (node: string): NodeError =>
  new NodeError(
    "otherBranch",
    node,
    `header not found: the pending block of ${node} does not continue the served head`,
    {
      code: CODES.SERVER,
    },
  );

/**
 * Reads the node's pending logs above the view's head. Returns none if the node rejects `pending`, as geth does.
 * The pending block is read after its logs. If it does not continue the view, the node's head is newer.
 * The request is then repeated in a new view.
 */
export const nodePendingLogs = async (
  input: MethodInput,
  filter: LogFilter,
  heads: Heads,
): Promise<readonly Uint8Array[]> => {
  const call = createCall("eth_getLogs", [{ fromBlock: "pending", toBlock: "pending" }]);
  const { result: logs, node } = await readPending(input, call, { canonicalParams: canonicalLogFilter(filter) });
  if (!Array.isArray(logs)) {
    return [];
  }
  const block = await readPendingBlock(input, node);
  const above = logs.filter((log) => isAbove(log, heads));
  if (!continuesHead(block, heads) || above.some(({ blockNumber }) => BigInt(blockNumber) > heads.latest.number + 1n)) {
    throw notContinued(node ?? "a node");
  }
  return above.filter((log) => matchesLog(filter, log)).map((log) => formatJson(log));
};
