import { isAborted } from "../core/lazySignal.ts";
import { NodeError, UnverifiedError } from "../core/node.ts";
import { parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import { type Hash, parseData } from "../ethereum/hex.ts";
import { presumedTransactionHash } from "../ethereum/rawTransactionHash.ts";
import { createCall } from "../jsonrpc/call.ts";
import { isKnownTransaction } from "../nodes/errorKind.ts";
import type { SubmittedTransaction } from "../pending/submittedTransaction.ts";
import { forwarded, type Method, type MethodInput } from "./method.ts";
import { hexOf, parseParams, readData, required } from "./paramSpec.ts";
import { requireSendable } from "./unsendable.ts";

const name = "eth_sendRawTransaction";

/** The time for the question whether a node has a transaction that was not accepted. */
const LOOKUP_MS = 2_000;

/**
 * Sends a transaction once to one node, or to all. The client's text is sent unchanged if it is canonical.
 * From then on, the returned hash is expected to exist, even if a slower node does not know it yet.
 */
export const eth_sendRawTransaction: Method = {
  name,
  retention: "never",
  atPending: "none",
  handle: async (input: MethodInput): Promise<RpcResponse> => {
    const [raw] = parseParams(input.call.params, [required("transaction", readData)]);
    requireSendable(input.chain, raw);
    const call = raw === input.call.params[0] ? input.call : createCall(name, [raw]);
    return (await sendTransaction({ ...input, call }, String(raw))).response;
  },
};

interface Sent {
  /** The result is the hash. */
  readonly response: RpcResponse;
  readonly submitted: SubmittedTransaction | undefined;
}

/** Sends a raw transaction by an `eth_sendRawTransaction`. */
export const sendTransaction = async (input: MethodInput, raw: string): Promise<Sent> => {
  const response = await send(input, raw);
  return { response, submitted: await input.chain.recordSubmitted(raw) };
};

/** A transaction that nodes have is sent, whatever the others say to all, and although one returned a wrong hash. */
const send = async (input: MethodInput, raw: string): Promise<RpcResponse> => {
  const { sendsToAll } = input.chain;
  try {
    return await forwarded(input, sendsToAll);
  } catch (error) {
    const isFinal = !sendsToAll && !(error instanceof UnverifiedError);
    if (!(error instanceof NodeError) || isFinal || isAborted(input.context)) {
      throw error;
    }
    const hash = presumedTransactionHash(parseData(hexOf(raw)));
    if (!isKnownTransaction(error) && !(await isKnown(input, hash))) {
      throw error;
    }
    return { body: Buffer.from(JSON.stringify(hash)), status: { fwd: "method" }, node: error.node };
  }
};

/** Whether the transaction is pre-confirmed, or a node has it. */
const isKnown = async ({ chain, context }: MethodInput, hash: Hash): Promise<boolean> => {
  if (context.view.pending?.find(hash) !== undefined) {
    return true;
  }
  const call = createCall("eth_getTransactionByHash", [hash]);
  const request = { ...call, retention: "never", canonicalParams: "", nullIsError: true } as const;
  const scope = context.with({ bypassCache: true, deadlineMs: performance.now() + LOOKUP_MS });
  const response = await chain.nodes.request(request, scope).catch(() => undefined);
  return response !== undefined && (parsedResult(response) ?? null) !== null;
};
