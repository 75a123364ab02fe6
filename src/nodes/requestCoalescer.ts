import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { asText } from "../json/jsonScan.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";

interface InFlightRequest {
  readonly answer: Promise<RpcResponse>;
  readonly ending: AbortController;
  readonly deadlineMs: number;
  askers: number;
  hasLanded: boolean;
}

/** A read that is kept by nobody may be meant to see what was written just before: it is not shared. */
const isShared = (question: RpcRequest, context: RequestContext): boolean =>
  !question.write && question.retention !== "never" && !context.bypassCache;

/**
 * What depends on the head, and an absence, is shared by those who have the same head: another may ask because of a new one, or
 * because the transaction was sent meanwhile.
 */
const keyOf = ({ method, paramsText, block, retention, nullIsError }: RpcRequest, { heads }: View): string => {
  const anchor = retention === "head" || retention === "byTransaction" ? heads.latest.hash : block?.hash;
  return `${method} ${anchor ?? ""} ${nullIsError ? "!" : ""}${asText(paramsText)}`;
};

/** The shared answer, as long as this asker waits for it. */
const waited = (answer: Promise<RpcResponse>, { signal, deadlineMs }: RequestContext): Promise<RpcResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  const onAbort = (): void => reject(signal.reason);
  const timer = setTimeout(
    () => reject(upstreamTimeout("no node answered in time")),
    Math.max(0, Math.ceil(deadlineMs - performance.now())),
  );
  signal.addEventListener("abort", onAbort, { once: true });
  answer.then(resolve, reject);
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  });
};

/** Equal reads that are under way at the same time are put to the nodes once. */
export const coalesced = (source: RpcSource): RpcSource => {
  const flights = new Map<string, InFlightRequest>();

  const lead = (key: string, question: RpcRequest, context: RequestContext): InFlightRequest => {
    const ending = new AbortController();
    const answer = source.request(question, { ...context, signal: ending.signal });
    const flight: InFlightRequest = { answer, ending, deadlineMs: context.deadlineMs, askers: 0, hasLanded: false };
    flights.set(key, flight);
    const land = (): void => {
      flight.hasLanded = true;
      if (flights.get(key) === flight) {
        flights.delete(key);
      }
    };
    answer.then(land, land);
    return flight;
  };

  const join = async (key: string, flight: InFlightRequest, context: RequestContext): Promise<RpcResponse> => {
    flight.askers += 1;
    try {
      return await waited(flight.answer, context);
    } finally {
      flight.askers -= 1;
      if (flight.askers === 0) {
        // Nobody may join what is about to be aborted.
        if (flights.get(key) === flight) {
          flights.delete(key);
        }
        // After the answer there is nothing to end, and an abort costs an exception with its stack.
        if (!flight.hasLanded) flight.ending.abort();
      }
    }
  };

  const request = async (question: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    if (!isShared(question, context)) {
      return source.request(question, context);
    }
    context.signal.throwIfAborted();
    const key = keyOf(question, context.view);
    const flying = flights.get(key);
    if (!flying) {
      return join(key, lead(key, question, context), context);
    }
    try {
      const answer = await join(key, flying, context);
      return { ...answer, status: { ...answer.status, collapsed: true } };
    } catch (error) {
      // The first asker had less time than this one.
      const tooEarly = error instanceof NodeError && error.kind === "timeout" && flying.deadlineMs < context.deadlineMs;
      if (tooEarly && performance.now() < context.deadlineMs) {
        return request(question, context);
      }
      throw error;
    }
  };

  return { request };
};
