import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { PendingBlock } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import { isFields } from "../json/fields.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import type { MethodInput } from "./method.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import { unknownReceipts, viewResponse } from "./pendingReads.ts";
import { type ResolvedBlock, resolveBlock } from "./resolveBlock.ts";
import { withPendingMode } from "./withPendingMode.ts";

/**
 * Answers a read at `pending`: from the view, or from the node's pending block, or at latest.
 * A missing pending block is never `null` (docs/answers.md, Blocks and pending).
 */
export const atPending = async (
  spec: BlockReadSpec,
  input: MethodInput,
  values: readonly CanonicalJson[],
  readAt: (block: ResolvedBlock) => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const { pending, heads } = input.context.view;
  const readLatest = () => readAt(resolveBlock({ tag: "latest" }, heads));
  if (pending === undefined) {
    return readLatest();
  }
  const respond = async (): Promise<RpcResponse> => {
    const source = spec.kind === "state" ? pending.stateFrom : pending.blocksFrom;
    if (source === "view" && spec.pending) {
      const { base } = pending;
      const atBase = () => readAt(resolveBlock({ hash: base.hash, requireCanonical: false }, heads));
      return spec.pending({ input, values, pending, atBase });
    }
    return source === "latest"
      ? readLatest()
      : readNodePending(spec, heads, () => readAt({ kind: "pending" }), readLatest);
  };
  return withPendingMode(pending.mode, respond(), input.context);
};

/**
 * Answers a read by the hash of a pending block that was shown in the last 10 s, from the view of that moment.
 * Returns undefined if there is none: nodes answer then.
 */
export const atPendingHash = (
  spec: BlockReadSpec,
  input: MethodInput,
  values: readonly CanonicalJson[],
  { hash, readAt }: { readonly hash: Hash; readonly readAt: (block: ResolvedBlock) => Promise<RpcResponse> },
): Promise<RpcResponse> | undefined => {
  const { pending: current, heads } = input.context.view;
  if (current === undefined || spec.pending === undefined) {
    return undefined;
  }
  if (spec.kind === "block") {
    const block = current.byHash(hash);
    return block && withPendingMode(current.mode, receiptsOfBlock(block), input.context);
  }
  const pending = current.atHash(hash);
  if (pending === undefined) {
    return undefined;
  }
  const base = { hash: pending.base.hash, requireCanonical: false };
  const atBase = () => readAt(resolveBlock(base, heads));
  return withPendingMode(current.mode, spec.pending({ input, values, pending, atBase }), input.context);
};

const receiptsOfBlock = async (block: PendingBlock): Promise<RpcResponse> => {
  const body = block.receipts();
  if (body === undefined) {
    throw unknownReceipts(block);
  }
  return viewResponse(body);
};

/** Reads the node's pending block. If there is none, or it is not above the head, it reads latest instead. */
const readNodePending = async (
  spec: BlockReadSpec,
  heads: Heads,
  readPending: () => Promise<RpcResponse>,
  readLatest: () => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const response = await readPending().catch((error: unknown) => {
    if (error instanceof NodeError && NO_PENDING_BLOCK.has(error.kind)) {
      return undefined;
    }
    throw error;
  });
  if (response === undefined || (isNull(response) && !spec.isNullable)) {
    return readLatest();
  }
  const number = spec.blockField === "hash" ? numberIn(response) : undefined;
  return number !== undefined && number <= heads.latest.number ? readLatest() : response;
};

const NO_PENDING_BLOCK: ReadonlySet<NodeErrorKind> = new Set(["tagUnsupported", "missingData"]);

const decoder = new TextDecoder();
/** Returns the `number` of a block response. */
const numberIn = ({ body }: RpcResponse): bigint | undefined => {
  if (!(body instanceof Uint8Array)) {
    return undefined;
  }
  const block: unknown = JSON.parse(decoder.decode(body));
  return isFields(block) && typeof block.number === "string" ? BigInt(block.number) : undefined;
};
