import { setTimeout as sleep } from "node:timers/promises";
import type { Heads } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { Chain } from "./method.ts";

/** Views that one question is put in at most. */
const MAX_VIEWS = 3;
const UNAVAILABLE_STATUS = 503;
/** How long heads may take to follow nodes that have left the view's branch: waited one after the other. */
const FOLLOW_DELAYS_MS = [50, 100, 200, 400];

const isOfOtherBranch = (error: unknown): boolean => error instanceof NodeError && error.kind === "otherBranch";

/** What nodes also say when the block asked for is no longer theirs. */
const isMissing = (error: unknown): boolean =>
  isOfOtherBranch(error) ||
  (error instanceof NodeError && error.kind === "missingData") ||
  (error instanceof RpcError && error.status === UNAVAILABLE_STATUS);

const isOf = ({ verified, block }: RpcResponse, heads: Heads): boolean =>
  verified !== false && (block === undefined || block.number <= heads.latest.number);

const holds = (heads: Heads, { block }: RpcResponse): boolean =>
  block !== undefined && heads.at(block.number)?.hash === block.hash;

/**
 * Asks in the request's view. Where the nodes have left its branch, or tell of a block above it, heads are read again, and the
 * question is put in the view that comes of it: an answer is true of a view that is held while it is asked, and what the caller
 * asks next at `latest` is not older than what he was told. While heads cannot follow, an answer of another branch is none.
 */
export const retryOnBranchChange = async (
  { heads }: Pick<Chain, "heads">,
  context: RequestContext,
  ask: (context: RequestContext) => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const delaysMs = FOLLOW_DELAYS_MS.values();
  let at = context;
  for (let views = 1; ; ) {
    let answer: RpcResponse | undefined;
    let failure: unknown;
    try {
      answer = await ask(at);
      if (isOf(answer, at.view.heads)) return answer;
    } catch (error) {
      if (!isMissing(error)) throw error;
      failure = error;
    }
    const next = await heads.refresh().catch(() => undefined);
    if (answer && next && holds(next, answer)) return answer;
    if (next !== undefined && next.latest.hash !== at.view.heads.latest.hash && views < MAX_VIEWS) {
      at = { ...context, view: { heads: next } };
      views += 1;
      continue;
    }
    if (answer) return answer;
    const delayMs = isOfOtherBranch(failure) ? delaysMs.next().value : undefined;
    if (delayMs === undefined || performance.now() + delayMs > context.deadlineMs) throw failure;
    await sleep(delayMs, undefined, { signal: context.signal });
  }
};
