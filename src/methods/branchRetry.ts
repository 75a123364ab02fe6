import { type Clock, systemClock } from "../core/clock.ts";
import type { Context } from "../core/context.ts";
import { type Heads, isCanonicalIn } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import { RETRY_LIMITS, RETRY_RULES, type RetryCause, type RetryRule, retryCause } from "../core/retryPolicy.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { HIDDEN } from "./hiddenBlocks.ts";
import type { MethodChain } from "./method.ts";

const UNAVAILABLE_STATUS = 503;

const causeOf = (error: unknown): RetryCause => {
  if (error instanceof NodeError) {
    return retryCause(error);
  }
  return error instanceof RpcError && error.status === UNAVAILABLE_STATUS ? "unavailable" : "other";
};

/** Returns how a request with this error is retried in a view. */
const viewRetry = (error: unknown): RetryRule["view"] => RETRY_RULES[causeOf(error)].view;

const isAboveView = ({ block }: RpcResponse, heads: Heads): boolean =>
  block !== undefined && block.number > heads.latest.number;

/** Whether the response can belong to the view: it is not known to be unverified, nor of a block above the view's head. */
const isInView = (response: RpcResponse, heads: Heads): boolean =>
  response.verified !== false && !isAboveView(response, heads);

/** Returns `null` for what is in a block that the client does not see yet, because it wants confirmations. */
const hiding =
  (send: (context: Context) => Awaitable<RpcResponse>) =>
  (context: Context): Awaitable<RpcResponse> =>
    whenKnown(send(context), (response) => (isAboveView(response, context.view.heads) ? HIDDEN : response));

const outsideView = ({ node = "a node" }: RpcResponse): NodeError =>
  new NodeError("otherBranch", node, `header not found: ${node} answers of a block that is not served`, {
    code: CODES.SERVER,
  });

const hasBlockOf = (heads: Heads, { block }: RpcResponse): boolean =>
  block !== undefined && isCanonicalIn(heads, block);

const isOtherHead = (next: Heads | undefined, { view }: Context): next is Heads =>
  next !== undefined && next.latest.hash !== view.heads.latest.hash;

/**
 * Sends a request in the context's view. If the nodes have left the view's branch, or return a block above it, heads are
 * refreshed. The request is then retried in the new view. So a response is true in a view that was served while the request
 * ran. The client's next request at `latest` does not read an older head. While heads do not follow, a response of another
 * branch, or of a block above the served head, is an error. RETRY_RULES and RETRY_LIMITS in core/retryPolicy.ts have the
 * causes and the limits.
 */
export const retryOnBranchChange = (
  chain: Pick<MethodChain, "heads">,
  context: Context,
  send: (context: Context) => Awaitable<RpcResponse>,
  clock: Clock = systemClock,
): Awaitable<RpcResponse> => {
  const { heads } = context.view;
  const request = context.behind === undefined ? send : hiding(send);
  const retried = { chain, context, request, clock };
  const first = firstResponse(request, context);
  const accept = (response: RpcResponse): Awaitable<RpcResponse> =>
    isInView(response, heads) ? response : retryFrom(() => response, retried);
  return first instanceof Promise
    ? first.then(accept, (error: unknown) =>
        retryFrom(() => {
          throw error;
        }, retried),
      )
    : accept(first);
};

/** Returns an error as a rejected promise, so that it is retried like a later one. */
const firstResponse = (
  request: (context: Context) => Awaitable<RpcResponse>,
  context: Context,
): Awaitable<RpcResponse> => {
  try {
    return request(context);
  } catch (error) {
    return Promise.reject(error);
  }
};

interface RetriedRequest {
  readonly chain: Pick<MethodChain, "heads">;
  readonly context: Context;
  readonly request: (context: Context) => Awaitable<RpcResponse>;
  readonly clock: Clock;
}

/** Retries the first response, or the error that `first` throws. */
const retryFrom = async (
  first: () => RpcResponse,
  { chain: { heads }, context, request, clock }: RetriedRequest,
): Promise<RpcResponse> => {
  const { maxViews, delaysMs } = RETRY_LIMITS.view;
  const delays = delaysMs.values();
  let current = context;
  let send: () => Awaitable<RpcResponse> = first;
  for (let views = 1; ; ) {
    const { response, error } = await attempt(send);
    send = () => request(current);
    if (response && isInView(response, current.view.heads)) {
      return response;
    }
    const next = await refreshedView(heads, current);
    if (response && isAccepted(response, current, next)) {
      return response;
    }
    if (next && views < maxViews) {
      views += 1;
    } else {
      await waitOrThrow(response ? outsideView(response) : error, delays, context, clock);
    }
    current = next ?? current;
  }
};

/** Refreshes the heads. Returns the context of the new view, or undefined if the heads have not changed. */
const refreshedView = async (heads: MethodChain["heads"], context: Context): Promise<Context | undefined> => {
  const next = await heads.refresh(context).catch(() => undefined);
  return isOtherHead(next, context) ? context.with({ view: { heads: next } }) : undefined;
};

/** Whether a response that is not in the view is returned. A block above the view must be in the next view. */
const isAccepted = (response: RpcResponse, { view }: Context, next: Context | undefined): boolean =>
  next ? hasBlockOf(next.view.heads, response) : !isAboveView(response, view.heads);

/** Returns the response, or the error if it is retried. Throws any other error. */
const attempt = async (
  send: () => Awaitable<RpcResponse>,
): Promise<{ readonly response?: RpcResponse; readonly error?: unknown }> => {
  try {
    return { response: await send() };
  } catch (error) {
    throwUnlessRetried(error);
    return { error };
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
  { signal, deadlineMs }: Context,
  clock: Clock,
): Promise<void> => {
  const delayMs = viewRetry(error) === "waitForView" ? delays.next().value : undefined;
  if (delayMs === undefined || performance.now() + delayMs > deadlineMs) {
    throw error;
  }
  await clock.sleep(delayMs, signal);
  signal.throwIfAborted();
};
