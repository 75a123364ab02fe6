import type { CallScope } from "../../core/context.ts";
import type { BlockId } from "../../core/heads.ts";
import type { WriteSetFailure } from "../writeSet.ts";
import type { BlockContent } from "./blockContent.ts";
import type { WriteSetThread } from "./writeSetThread.ts";

export interface BlockContentOptions {
  readonly thread: Pick<WriteSetThread, "run">;
  /** Returns the JSON text of the block with whole transactions. Rejects if no node has it. */
  readonly readBlock: (block: BlockId, scope: CallScope) => Promise<Uint8Array>;
}

/** Reads a sealed block, and checks it against its hash. Rejects if no node has it. */
export const readBlockContent = async (
  { readBlock, thread }: BlockContentOptions,
  block: BlockId,
  scope: CallScope,
): Promise<BlockContent | WriteSetFailure> => {
  const body = new Uint8Array(await readBlock(block, scope));
  const output = await thread.run({ kind: "content", block, body }, [body.buffer], scope);
  if (output.kind === "content") {
    return output.content;
  }
  return output.kind === "failed" ? output.reason : "error";
};

/** Returns what the promise resolves to, or "late" at the deadline or abort of the scope. */
export const withinScope = <T>(
  promise: Promise<T>,
  { deadlineMs, signal }: Pick<CallScope, "deadlineMs" | "signal">,
): Promise<T | "late"> => {
  const timeoutMs = Math.max(0, Math.ceil(deadlineMs - performance.now()));
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const late = Promise.withResolvers<"late">();
  limit.addEventListener("abort", () => late.resolve("late"), { once: true });
  return Promise.race([promise, late.promise]);
};
