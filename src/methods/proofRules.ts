import type { Context } from "../core/context.ts";
import { type BlockId, type Heads, isCanonicalIn } from "../core/heads.ts";
import { isNodeFault, NodeError, type NodeErrorKind } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import type { Awaitable, Call } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { PROVEN_EVENTS } from "../subscriptions/eventSubscribers.ts";
import type { MethodChain, Prove } from "./method.ts";

// What counts as proven, for clients that require proven answers (docs/answers.md, Proven answers only).

/** Why an answer is not proven although it must be. */
export type NotProvenReason = "noProof" | "notAgreed" | "method" | "pending";

const TEXTS: Readonly<Record<NotProvenReason, string>> = {
  noProof: "no proof of this answer was found",
  notAgreed: "no majority of several origins has the block",
  method: "answers of this method cannot be proven",
  pending: "no header binds a pending block",
};

/** The error of a call whose answer must be proven, and is not. It counts against no node. */
export class NotProvenError extends RpcError {
  readonly reason: NotProvenReason;

  /** `grade`: that of the answer that was found. */
  constructor(reason: NotProvenReason, grade?: RpcResponse["grade"]) {
    const data = { required: "proven", label: grade ?? "stated", reason };
    super(CODES.SERVER, `not proven: ${TEXTS[reason]}`, { data });
    this.reason = reason;
  }
}

/** One call whose answer must be proven. */
export interface ProvenCall {
  readonly chain: Pick<MethodChain, "committed" | "logLimits" | "nodes" | "state" | "provenBlocks">;
  readonly call: Call;
  /** Its view has no pending blocks. */
  readonly context: Context;
  /** Runs another call in this context. */
  read(method: string, params: readonly unknown[]): Awaitable<RpcResponse>;
}

/** What decides whether a block needs no proof. */
type AnchoredCall = Pick<ProvenCall, "call" | "context"> & { readonly chain: Pick<MethodChain, "committed"> };

const namesPending = (param: unknown): boolean =>
  param === "pending" || (isFields(param) && Object.values(param).includes("pending"));

/** Throws if no call with these parameters can be proven. */
export const requireProvable = ({ params }: Call, prove: Prove, { isAgreed }: Heads): void => {
  if (params.some(namesPending)) {
    throw new NotProvenError("pending");
  }
  if (!isAgreed) {
    throw new NotProvenError("notAgreed");
  }
  if (prove === "never" || (prove === "atDelivery" && !PROVEN_EVENTS.has(params[0]))) {
    throw new NotProvenError("method");
  }
};

/** With `requireCanonical` (EIP-1898), the hash alone is not enough. */
const namesHash = (param: unknown, hash: Hash): boolean =>
  typeof param === "string"
    ? param.toLowerCase() === hash
    : isFields(param) && param.requireCanonical !== true && namesHash(param.blockHash, hash);

/** Whether the head of the chain commits to the block. With confirmations, that of the view is only its ancestor in the ring. */
export const isCommitted = (block: BlockId, { chain, context }: Omit<AnchoredCall, "call">): boolean =>
  chain.committed.has((context.behind?.actual ?? context.view).heads, block);

/** Whether a client needs no proof of the block: it has named its hash, or an agreed head commits to it. */
export const isAnchored = (block: BlockId, proven: AnchoredCall): boolean =>
  proven.call.params.some((param) => namesHash(param, block.hash)) || isCommitted(block, proven);

/** Throws unless the answer is proven by a header of the served chain, or of the block that the client names by its hash. */
export const requireProof = (response: RpcResponse, proven: ProvenCall): RpcResponse => {
  const { grade, block } = response;
  if (grade !== "proven" || block === undefined) {
    throw new NotProvenError("noProof", grade);
  }
  if (!isAnchored(block, proven)) {
    const isServed = isCanonicalIn(proven.context.view.heads, block);
    throw new NotProvenError(isServed ? "noProof" : "notAgreed", grade);
  }
  return response;
};

/** Whether a node may answer later. Otherwise all nodes lack the proof, or the error is an answer, which nothing proves. */
const mayAnswerLater = (kind: NodeErrorKind): boolean =>
  kind === "cancelled" || (isNodeFault(kind) && kind !== "unverified");

/** The error for a client in place of a node's. Text and data of that are unproven: they could say that a call reverts. */
export const provenError = (error: NodeError): RpcError => {
  const { kind, node, reply, status, retryAfterSeconds = 1 } = error;
  if (!mayAnswerLater(kind)) {
    return new NotProvenError("noProof");
  }
  return reply === undefined
    ? error
    : new NodeError(kind, node, "no node can answer now", { status: status === 200 ? 503 : status, retryAfterSeconds });
};
