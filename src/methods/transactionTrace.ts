import type { RpcResponse } from "../core/rpcSource.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { Method, MethodInput } from "./method.ts";
import { isRecord, type ParamSpec } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";

const decoder = new TextDecoder();

/** The number of the block that holds a transaction, as a node says it; undefined while it has none. */
const blockOf = async ({ chain, context }: MethodInput, hash: string): Promise<bigint | undefined> => {
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
  if (!(body instanceof Uint8Array)) return undefined;
  const transaction: unknown = JSON.parse(decoder.decode(body));
  return isRecord(transaction) && typeof transaction.blockNumber === "string"
    ? BigInt(transaction.blockNumber)
    : undefined;
};

/** A trace does not tell its block and cannot be asked by block hash: it is kept once the transaction's block is final. */
export const transactionTrace = (name: string, params: readonly ParamSpec[]): Method => ({
  name,
  kept: "final",
  atPending: "none",
  answer: async (asked): Promise<RpcResponse> => {
    const { chain, call, context } = asked;
    const values = parseParams(call.params, params);
    const question = { ...createCall(name, values), canonicalParams: JSON.stringify([name, values]) };
    // A node that cannot say where the transaction is may still trace it; the trace is not kept then.
    const number = await blockOf(asked, String(values[0])).catch(() => undefined);
    const { finalized } = context.view.heads;
    return number !== undefined && finalized !== undefined && number <= finalized.number
      ? chain.reads.request({ ...question, retention: "final", block: { number } }, context)
      : chain.reads.request({ ...question, retention: "never" }, context);
  },
});
