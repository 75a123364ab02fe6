import type { RpcResponse } from "../core/rpcSource.ts";
import { isFields } from "../json/fields.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { Method, MethodInput } from "./method.ts";
import { type ParamSpec, parseParams } from "./paramSpec.ts";

const decoder = new TextDecoder();

/** Reads the number of a transaction's block from a node; undefined if it has none. */
const readBlockNumber = async ({ chain, context }: MethodInput, hash: string): Promise<bigint | undefined> => {
  const name = "eth_getTransactionByHash";
  const { body } = await chain.reads.request(
    {
      ...createCall(name, [hash]),
      retention: "byTransaction",
      canonicalParams: JSON.stringify([name, [hash]]),
      blockField: "blockHash",
    },
    context,
  );
  if (!(body instanceof Uint8Array)) {
    return undefined;
  }
  const transaction: unknown = JSON.parse(decoder.decode(body));
  return isFields(transaction) && typeof transaction.blockNumber === "string"
    ? BigInt(transaction.blockNumber)
    : undefined;
};

/**
 * Creates a method that traces a transaction. It is cached only if the transaction's block is final.
 * A trace does not contain its block, and cannot be requested by block hash.
 */
export const transactionTrace = (name: string, params: readonly ParamSpec[]): Method => ({
  name,
  retention: "final",
  atPending: "none",
  isSlow: true,
  handle: async (input): Promise<RpcResponse> => {
    const { chain, call, context } = input;
    const values = parseParams(call.params, params);
    const request = { ...createCall(name, values), canonicalParams: JSON.stringify([name, values]) };
    // A node without the transaction's block may still trace it. Such a trace is not cached.
    const number = await readBlockNumber(input, String(values[0])).catch(() => undefined);
    const { finalized } = context.view.heads;
    return number !== undefined && finalized !== undefined && number <= finalized.number
      ? chain.reads.request({ ...request, retention: "final", block: { number } }, context)
      : chain.reads.request({ ...request, retention: "never" }, context);
  },
});
