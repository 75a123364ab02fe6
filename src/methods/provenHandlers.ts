import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { isNodeFault, NodeError, type NodeErrorKind } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { isFields } from "../json/jsonBytes.ts";
import { type Call, createCall, whenKnown } from "../jsonrpc/call.ts";
import type { Handler } from "../jsonrpc/dispatch.ts";
import type { RpcError } from "../jsonrpc/rpcError.ts";
import { isAnchored } from "./anchors.ts";
import { subscribe } from "./eth_subscribe.ts";
import type { Handlers } from "./handlers.ts";
import type { Chain, MethodInput } from "./method.ts";
import { NotProvenError, type NotProvenReason } from "./notProven.ts";
import { proveLogs } from "./provenLogs.ts";
import {
  asItIs,
  type ProvenCall,
  type Prover,
  proveBalance,
  proveCode,
  proveCount,
  proveNonce,
  proveSlot,
  proveUncleCount,
} from "./provenReads.ts";
import {
  proveBlock,
  proveBlockReceipts,
  proveReceipt,
  proveTransaction,
  proveTransactionAt,
} from "./provenTransactions.ts";

/** The methods whose answers can be proven. */
const PROVERS: ReadonlyMap<string, Prover> = new Map<string, Prover>([
  ["eth_blockNumber", asItIs],
  ["eth_getHeaderByNumber", asItIs],
  ["eth_getHeaderByHash", asItIs],
  ["eth_getBlockByNumber", proveBlock],
  ["eth_getBlockByHash", proveBlock],
  ["eth_getBlockTransactionCountByNumber", proveCount("eth_getBlockByNumber")],
  ["eth_getBlockTransactionCountByHash", proveCount("eth_getBlockByHash")],
  ["eth_getUncleCountByBlockNumber", proveUncleCount("eth_getBlockByNumber")],
  ["eth_getUncleCountByBlockHash", proveUncleCount("eth_getBlockByHash")],
  ["eth_getTransactionByHash", proveTransaction],
  ["eth_getTransactionByBlockNumberAndIndex", proveTransactionAt("eth_getBlockByNumber")],
  ["eth_getTransactionByBlockHashAndIndex", proveTransactionAt("eth_getBlockByHash")],
  ["eth_getTransactionReceipt", proveReceipt],
  ["eth_getBlockReceipts", proveBlockReceipts],
  ["eth_getBlockAccessList", asItIs],
  ["debug_getRawBlockAccessList", asItIs],
  ["eth_getLogs", proveLogs],
  ["eth_getProof", asItIs],
  ["eth_getBalance", proveBalance],
  ["eth_getTransactionCount", proveNonce],
  ["eth_getStorageAt", proveSlot],
  ["eth_getCode", proveCode],
  ["eth_call", asItIs],
]);

/** What no header can prove, and is no answer about the chain: its id, writes with the wait for a receipt, ends of subscriptions. */
const EXEMPT = /^(?:eth_chainId$|eth_unsubscribe$|net_version$|eth_send|web3_)/;

const namesPending = (param: unknown): boolean =>
  param === "pending" || (isFields(param) && Object.values(param).includes("pending"));

/** Throws unless the answer is proven by a header of the served chain, or of the block that the client names by its hash. */
const requireProof = (response: RpcResponse, proven: ProvenCall): RpcResponse => {
  const { proof, block } = response;
  if (proof !== "proven" || block === undefined) {
    throw new NotProvenError("noProof", proof);
  }
  if (!isAnchored(block, proven)) {
    const isServed = proven.context.view.heads.at(block.number)?.hash === block.hash;
    throw new NotProvenError(isServed ? "noProof" : "notAgreed", proof);
  }
  return response;
};

/** Whether a node may answer later. Otherwise all nodes lack the proof, or the error is an answer, which nothing proves. */
const mayAnswerLater = (kind: NodeErrorKind): boolean =>
  kind === "cancelled" || (isNodeFault(kind) && kind !== "unverified");

/** The error for a client in place of a node's. Text and data of that are unproven: they could say that a call reverts. */
const provenError = (error: NodeError): RpcError => {
  const { kind, node, reply, status, retryAfterSeconds = 1 } = error;
  if (!mayAnswerLater(kind)) {
    return new NotProvenError("noProof");
  }
  return reply === undefined
    ? error
    : new NodeError(kind, node, "no node can answer now", { status: status === 200 ? 503 : status, retryAfterSeconds });
};

const prove = async (prover: Prover, proven: ProvenCall): Promise<RpcResponse> => {
  try {
    return requireProof(await prover(proven), proven);
  } catch (error) {
    throw error instanceof NodeError ? provenError(error) : error;
  }
};

/** Whether another block is served at that number, or none yet. Nothing is known of a number below the block ring. */
const isOutside = ({ number, hash }: BlockId, { latest, at }: Heads): boolean =>
  number > latest.number || (at(number)?.hash ?? hash) !== hash;

/** Throws if no call with these parameters can be proven. */
const requireAgreed = ({ params }: Call, { isAgreed }: Heads): void => {
  if (params.some(namesPending)) {
    throw new NotProvenError("pending");
  }
  if (!isAgreed) {
    throw new NotProvenError("notAgreed");
  }
};

/** Returns the prover of a call. Throws if its answer cannot be proven. */
const proverOf = (call: Call, heads: Heads): Prover => {
  requireAgreed(call, heads);
  const prover = PROVERS.get(call.method);
  if (prover === undefined) {
    throw new NotProvenError("method");
  }
  return prover;
};

/** The subscriptions to agreed blocks whose events are proven. */
const PROVEN_SUBSCRIPTIONS: ReadonlySet<unknown> = new Set(["newHeads", "logs"]);

const subscribeProven = async (input: MethodInput): Promise<RpcResponse> => {
  const { call, context } = input;
  requireAgreed(call, context.view.heads);
  if (!PROVEN_SUBSCRIPTIONS.has(call.params[0])) {
    throw new NotProvenError("method");
  }
  return subscribe(input, true);
};

/**
 * Creates handlers that return only answers that are proven on an agreed head, and throw NotProvenError instead of any other.
 * `latest` is the newest agreed block.
 */
export const createProvenHandlers = (
  chain: Chain,
  handlers: Handlers,
  onNotProven: (reason: NotProvenReason) => void,
): Handlers => {
  const run = (call: Call, context: Context) => (handlers.lookup(call.method) ?? handlers.forward)(call, context);

  /** `onOutside` is called if a read returns a block that is not in the heads. */
  const proveIn = async (call: Call, context: Context, heads: Heads, onOutside: () => void): Promise<RpcResponse> => {
    const prover = proverOf(call, heads);
    const sealed = context.with({ view: { heads }, requiresProof: true });
    const read: ProvenCall["read"] = (method, params) =>
      whenKnown(run(createCall(method, params), sealed), (response) => {
        if (response.block !== undefined && isOutside(response.block, heads)) {
          onOutside();
        }
        return response;
      });
    return prove(prover, { chain, call, context: sealed, read });
  };

  /** Reads the newest headers, if the proof may have lacked one of them, as after a start. Undefined if they are known. */
  const reachHeaders = async ({ reason }: NotProvenError, context: Context): Promise<Heads | undefined> =>
    reason === "noProof"
      ? (await chain.heads.reach({ from: 0n, to: context.view.heads.latest.number }, context))?.heads
      : undefined;

  /** A read that refreshes the heads is answered of newer ones than the call began with. So the call is proven in these, once. */
  const answer = async (call: Call, context: Context): Promise<RpcResponse> => {
    const { heads } = context.view;
    let isNewer = false;
    try {
      return await proveIn(call, context, heads, () => {
        isNewer = true;
      });
    } catch (error) {
      if (!(error instanceof NotProvenError)) {
        throw error;
      }
      const reached = await reachHeaders(error, context);
      const next = reached ?? (isNewer ? await chain.heads.refresh(context) : heads);
      if (reached === undefined && next.latest.hash === heads.latest.hash) {
        throw error;
      }
      return proveIn(call, context, next, () => undefined);
    }
  };

  const proven = (call: Call, context: Context): Promise<RpcResponse> =>
    call.method === "eth_subscribe" ? subscribeProven({ chain, call, context }) : answer(call, context);

  const handle: Handler<Context, RpcResponse> = (call, context) =>
    EXEMPT.test(call.method)
      ? run(call, context)
      : proven(call, context).catch((error: unknown) => {
          if (error instanceof NotProvenError) {
            onNotProven(error.reason);
          }
          throw error;
        });
  return { lookup: () => handle, forward: handle };
};
