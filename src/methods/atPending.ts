import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { BlockRead } from "./blockRead.ts";
import type { MethodInput } from "./method.ts";
import { type CanonicalJson, isRecord } from "./paramSpec.ts";
import { withPendingMode } from "./pendingModeErrors.ts";
import { type ResolvedBlock, resolveBlock } from "./resolveBlock.ts";

/** The rules of architecture.md's table of answers: the view, else the node's own pending if there is one, else latest; a block is never null. */
export const atPending = async (
  entry: BlockRead,
  asked: MethodInput,
  values: readonly CanonicalJson[],
  at: (place: ResolvedBlock) => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const { pending, heads } = asked.context.view;
  const latest = () => at(resolveBlock({ tag: "latest" }, heads));
  if (pending === undefined) return latest();
  const answer = async (): Promise<RpcResponse> => {
    const source = entry.kind === "state" ? pending.stateFrom : pending.blocksFrom;
    if (source === "view" && entry.pending) {
      const { base } = pending;
      const atBase = () => at(resolveBlock({ hash: base.hash, requireCanonical: false }, heads));
      return entry.pending({ asked, values, pending, atBase });
    }
    return source === "latest" ? latest() : nodePending(entry, heads, () => at({ kind: "pending" }), latest);
  };
  return withPendingMode(pending.mode, answer());
};

/** A node may have no pending block, or one that is behind: then latest is newer. */
const nodePending = async (
  entry: BlockRead,
  heads: Heads,
  ask: () => Promise<RpcResponse>,
  latest: () => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const answer = await ask().catch((error: unknown) => {
    if (error instanceof NodeError && UNANSWERED.has(error.kind)) return undefined;
    throw error;
  });
  if (answer === undefined || (isNull(answer) && !entry.isNullable)) return latest();
  const number = entry.blockField === "hash" ? numberIn(answer) : undefined;
  return number !== undefined && number <= heads.latest.number ? latest() : answer;
};

const UNANSWERED: ReadonlySet<NodeErrorKind> = new Set(["tagUnsupported", "missingData"]);

const decoder = new TextDecoder();
/** The `number` of a block answer. */
const numberIn = ({ body }: RpcResponse): bigint | undefined => {
  if (!(body instanceof Uint8Array)) return undefined;
  const block: unknown = JSON.parse(decoder.decode(body));
  return isRecord(block) && typeof block.number === "string" ? BigInt(block.number) : undefined;
};
