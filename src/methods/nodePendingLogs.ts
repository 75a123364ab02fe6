import type { Heads } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { isQuantity, type Quantity } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter, matchesLog } from "../ethereum/logFilter.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { MethodInput } from "./method.ts";
import { isRecord } from "./paramSpec.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

interface NodeLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly blockNumber: Quantity;
}

const isAbove = (log: unknown, heads: Heads): log is NodeLog =>
  isRecord(log) &&
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
  canonicalParams: string,
): Promise<{ readonly result: unknown; readonly node: string | undefined }> => {
  try {
    const { body, node } = await chain.reads.request({ ...call, retention: "never", canonicalParams }, context);
    return { result: body instanceof Uint8Array ? JSON.parse(decoder.decode(body)) : undefined, node };
  } catch (error) {
    if (error instanceof NodeError && !FAULTS.has(error.kind)) {
      return NOTHING;
    }
    throw error;
  }
};

/** Whether a pending block is the child of the head, or at or below it: then no block between them is left out. */
const continuesHead = (block: unknown, { latest }: Heads): boolean => {
  if (!isRecord(block) || !isQuantity(block.number)) {
    return true;
  }
  const number = BigInt(block.number);
  return number <= latest.number || (number === latest.number + 1n && block.parentHash === latest.hash);
};

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
  const { result: logs, node = "a node" } = await readPending(input, call, canonicalLogFilter(filter));
  if (!Array.isArray(logs)) {
    return [];
  }
  const { result: block } = await readPending(input, createCall("eth_getBlockByNumber", ["pending", false]), "");
  const above = logs.filter((log) => isAbove(log, heads));
  if (!continuesHead(block, heads) || above.some(({ blockNumber }) => BigInt(blockNumber) > heads.latest.number + 1n)) {
    throw new NodeError(
      "otherBranch",
      node,
      `header not found: the pending block of ${node} does not continue the served head`,
      {
        code: CODES.SERVER,
      },
    );
  }
  return above.filter((log) => matchesLog(filter, log)).map((log) => encoder.encode(JSON.stringify(log)));
};
