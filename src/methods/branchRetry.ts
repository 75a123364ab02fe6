import { setTimeout as sleep } from "node:timers/promises";
import type { Heads } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { Chain } from "./method.ts";

/** Limit of the views in which one request is sent. */
const MAX_VIEWS = 3;
const UNAVAILABLE_STATUS = 503;
/** Successive waits for heads to follow nodes that have left the view's branch. */
const FOLLOW_DELAYS_MS = [50, 100, 200, 400];

const isOfOtherBranch = (error: unknown): boolean => error instanceof NodeError && error.kind === "otherBranch";

/** Whether the error may mean that the requested block is not on the node's branch any more. */
const isMissing = (error: unknown): boolean =>
  isOfOtherBranch(error) ||
  (error instanceof NodeError && error.kind === "missingData") ||
  (error instanceof RpcError && error.status === UNAVAILABLE_STATUS);

const matchesView = ({ verified, block }: RpcResponse, heads: Heads): boolean =>
  verified !== false && (block === undefined || block.number <= heads.latest.number);

const hasBlockOf = (heads: Heads, { block }: RpcResponse): boolean =>
  block !== undefined && heads.at(block.number)?.hash === block.hash;

type Request = (context: RequestContext) => Promise<RpcResponse>;
type HeadSource = Chain["heads"];

/** A response that does not match the view, or the error of the request. */
interface Attempt {
  readonly answer: RpcResponse | undefined;
  readonly error: unknown;
}

/**
 * Sends a request in the request's view. If the view has changed, it refreshes the heads and sends it in the new view.
 * A view has changed if the nodes have left its branch, or if a response belongs to a block above its head.
 * So a response is valid in a current view, and the client's next read at `latest` is not older than this one.
 * If heads do not follow the nodes in time, the error of the last request is thrown.
 */
export const retryOnBranchChange = async (
  { heads }: Pick<Chain, "heads">,
  context: RequestContext,
  request: Request,
): Promise<RpcResponse> => {
  let answer: RpcResponse | undefined;
  let failure: unknown;
  // The first attempt is inline, because a cache hit must not cost a further promise.
  try {
    answer = await request(context);
    if (matchesView(answer, context.view.heads)) return answer;
  } catch (error) {
    if (!isMissing(error)) throw error;
    failure = error;
  }
  return retryInNewView(heads, context, request, { answer, error: failure });
};

const retryInNewView = async (
  heads: HeadSource,
  context: RequestContext,
  request: Request,
  first: Attempt,
): Promise<RpcResponse> => {
  const delaysMs = FOLLOW_DELAYS_MS.values();
  let current = context;
  let last = first;
  for (let views = 1; ; ) {
    const next = await heads.refresh().catch(() => undefined);
    if (last.answer && next && hasBlockOf(next, last.answer)) return last.answer;
    if (next !== undefined && next.latest.hash !== current.view.heads.latest.hash && views < MAX_VIEWS) {
      current = { ...context, view: { heads: next } };
      views += 1;
    } else {
      if (last.answer) return last.answer;
      await waitForHeads(last.error, delaysMs.next().value, context);
    }
    last = await attempt(request, current);
    if (last.answer && matchesView(last.answer, current.view.heads)) return last.answer;
  }
};

const attempt = async (request: Request, context: RequestContext): Promise<Attempt> => {
  try {
    return { answer: await request(context), error: undefined };
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { answer: undefined, error };
  }
};

/** Waits until heads may have followed the nodes. Rethrows errors that waiting does not fix. */
const waitForHeads = async (error: unknown, delayMs: number | undefined, context: RequestContext): Promise<void> => {
  const isTooLate = delayMs === undefined || performance.now() + delayMs > context.deadlineMs;
  if (isTooLate || !isOfOtherBranch(error)) throw error;
  await sleep(delayMs, undefined, { signal: context.signal });
};
