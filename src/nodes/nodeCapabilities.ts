import type { CallScope } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import { isQuantity } from "../ethereum/hex.ts";
import { isFields, parseJson } from "../json/jsonBytes.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";

/** The kinds of data that a node states separately. Source: https://github.com/ethereum/execution-apis/pull/755 */
export const DATA_RESOURCES = ["state", "tx", "logs", "receipts", "blocks", "stateproofs"] as const;
export type DataResource = (typeof DATA_RESOURCES)[number];

/** What a node states of one kind of its data. */
interface StatedData {
  readonly isDisabled: boolean;
  readonly oldestBlock: bigint;
  /** The node keeps this number of its newest blocks. */
  readonly windowBlocks: bigint | undefined;
}

export type Capabilities = Readonly<Partial<Record<DataResource, StatedData>>>;

/** A node without old state keeps that of its newest blocks. Besu says of such a node that it has no state at all. */
const KEPT_BLOCKS = 128n;

const quantityOf = (value: unknown): bigint | undefined => (isQuantity(value) ? BigInt(value) : undefined);

const parseStated = (value: unknown): StatedData | undefined => {
  if (!isFields(value) || typeof value.disabled !== "boolean") {
    return undefined;
  }
  const { type, retentionBlocks } = isFields(value.deleteStrategy) ? value.deleteStrategy : {};
  const blocks =
    typeof retentionBlocks === "number" ? BigInt(Math.trunc(retentionBlocks)) : quantityOf(retentionBlocks);
  return {
    isDisabled: value.disabled,
    oldestBlock: quantityOf(value.oldestBlock) ?? 0n,
    windowBlocks: type === "window" && blocks !== undefined && blocks > 0n ? blocks : undefined,
  };
};

/** Parses a response to eth_capabilities. Undefined if it is none. */
const parseCapabilities = (value: unknown): Capabilities | undefined => {
  if (!isFields(value)) {
    return undefined;
  }
  const entries = DATA_RESOURCES.flatMap((resource) => {
    const stated = parseStated(value[resource]);
    return stated === undefined ? [] : [[resource, stated] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
};

/** Returns the lowest block whose data the node states to have at this head. */
export const oldestStated = ({ isDisabled, oldestBlock, windowBlocks }: StatedData, head: bigint): bigint => {
  const kept = isDisabled ? KEPT_BLOCKS : windowBlocks;
  const ofWindow = kept === undefined || head < kept ? 0n : head - kept + 1n;
  return ofWindow > oldestBlock ? ofWindow : oldestBlock;
};

const BY_METHOD: Readonly<Record<string, DataResource>> = {
  eth_getProof: "stateproofs",
  eth_getLogs: "logs",
  eth_getBlockReceipts: "receipts",
  eth_getTransactionReceipt: "receipts",
  debug_getRawReceipts: "receipts",
};
const BLOCKS = /^eth_(getBlock|getHeader|getUncle|feeHistory)|^debug_getRaw(Block|Header)/;
const TRANSACTIONS = /^eth_get(Raw)?Transaction(By|ByHash)|^debug_getRawTransaction/;

/** Returns the kind of data that a node needs for a method. A call, a trace or an unknown method may need state. */
export const resourceOf = (method: string): DataResource =>
  BY_METHOD[method] ?? (BLOCKS.test(method) ? "blocks" : TRANSACTIONS.test(method) ? "tx" : "state");

const METHOD = "eth_capabilities";
const READ_MS = 600_000;
const TIMEOUT_MS = 5_000;

/** A node whose capabilities are read. */
interface StatingNode {
  serves(method: string): boolean;
  send(call: Call, scope: CallScope): Promise<Uint8Array>;
  /** Undefined: the node does not say what it has. */
  recordCapabilities(stated: Capabilities | undefined): void;
}

const readCapabilities = async (node: StatingNode, signal: AbortSignal): Promise<void> => {
  if (!node.serves(METHOD)) {
    return;
  }
  try {
    const body = await node.send(createCall(METHOD, []), { signal, deadlineMs: performance.now() + TIMEOUT_MS });
    node.recordCapabilities(parseCapabilities(parseJson(body)));
  } catch (error) {
    if (error instanceof NodeError && error.kind === "unsupportedMethod") {
      node.recordCapabilities(undefined);
    }
    // After any other error, the last statement counts until the next one.
  }
};

/** Reads what data each node has, now and every ten minutes, until the signal ends it. */
export const followCapabilities = async (nodes: readonly StatingNode[], signal: AbortSignal): Promise<void> => {
  const read = () => Promise.all(nodes.map((node) => readCapabilities(node, signal)));
  const timer = setInterval(() => void read(), READ_MS);
  timer.unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  await read();
};
