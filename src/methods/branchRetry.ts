import { type Clock, systemClock } from "../core/clock.ts";
import { deriveContext } from "../core/deriveContext.ts";
import type { Heads } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import { RETRY_LIMITS, RETRY_RULES, type RetryRule } from "../core/retryPolicy.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import { retryCause } from "../nodes/errorKind.ts";
import type { Chain } from "./method.ts";

const UNAVAILABLE_STATUS = 503;

/** Returns how a request with this error is retried in a view. */
const viewRetry = (error: unknown): RetryRule["view"] => {
  const { view } = error instanceof NodeError ? RETRY_RULES[retryCause(error)] : RETRY_RULES.other;
  const isUnavailable = error instanceof RpcError && error.status === UNAVAILABLE_STATUS;
  return view === "never" && isUnavailable ? RETRY_RULES.unavailable.view : view;
};

/** Whether the response can belong to the view: it is not known to be unverified, nor of a block above the view's head. */
const isInView = ({ verified, block }: RpcResponse, heads: Heads): boolean =>
  verified !== false && (block === undefined || block.number <= heads.latest.number);

const hasBlockOf = (heads: Heads, { block }: RpcResponse): boolean =>
  block !== undefined && heads.at(block.number)?.hash === block.hash;

const isOtherHead = (next: Heads | undefined, { view }: RequestContext): next is Heads =>
  next !== undefined && next.latest.hash !== view.heads.latest.hash;

/**
 * Sends a request in the context's view. If the nodes have left the view's branch, or return a block above it, heads are
 * refreshed. The request is then retried in the new view. So a response is true in a view that was served while the request
 * ran. The client's next request at `latest` does not read an older head. While heads do not follow, a response of another
 * branch is an error. RETRY_RULES and RETRY_LIMITS in core/retryPolicy.ts have the causes and the limits.
 */
export const retryOnBranchChange = (
  chain: Pick<Chain, "heads">,
  context: RequestContext,
  request: (context: RequestContext) => Awaitable<RpcResponse>,
  clock: Clock = systemClock,
): Awaitable<RpcResponse> => {
  const first = request(context);
  const isFinished = !(first instanceof Promise) && isInView(first, context.view.heads);
  return isFinished ? first : retryFrom(first, { chain, context, request, clock });
};

interface RetriedRequest {
  readonly chain: Pick<Chain, "heads">;
  readonly context: RequestContext;
  readonly request: (context: RequestContext) => Awaitable<RpcResponse>;
  readonly clock: Clock;
}

/** Awaits the first response, and retries it. */
const retryFrom = async (
  first: Awaitable<RpcResponse>,
  { chain: { heads }, context, request, clock }: RetriedRequest,
): Promise<RpcResponse> => {
  const { maxViews, delaysMs } = RETRY_LIMITS.view;
  const delays = delaysMs.values();
  let response: Awaitable<RpcResponse> | undefined = first;
  let current = context;
  for (let views = 1; ; ) {
    const outcome: { response?: RpcResponse; error?: unknown } = {};
    try {
      outcome.response = await (response ?? request(current));
      if (isInView(outcome.response, current.view.heads)) {
        return outcome.response;
      }
    } catch (error) {
      throwUnlessRetried(error);
      outcome.error = error;
    }
    response = undefined;
    const next = await heads.refresh().catch(() => undefined);
    if (outcome.response && next && hasBlockOf(next, outcome.response)) {
      return outcome.response;
    }
    if (views < maxViews && isOtherHead(next, current)) {
      current = deriveContext(context, { view: { heads: next } });
      views += 1;
    } else if (outcome.response) {
      return outcome.response;
    } else {
      await waitOrThrow(outcome.error, delays, context, clock);
    }
  }
};

const throwUnlessRetried = (error: unknown): void => {
  if (viewRetry(error) === "never") {
    throw error;
  }
};

/** Waits for the next delay if the error permits that, and if the delay ends before the deadline. Throws the error if not. */
const waitOrThrow = async (
  error: unknown,
  delays: Iterator<number, undefined>,
  { signal, deadlineMs }: RequestContext,
  clock: Clock,
): Promise<void> => {
  const delayMs = viewRetry(error) === "waitForView" ? delays.next().value : undefined;
  if (delayMs === undefined || performance.now() + delayMs > deadlineMs) {
    throw error;
  }
  await clock.sleep(delayMs, signal);
  signal.throwIfAborted();
};
