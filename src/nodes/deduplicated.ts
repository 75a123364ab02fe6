import { NodeError } from "../core/node.ts";
import type { Answer, CallContext, Question, Source } from "../core/source.ts";
import type { View } from "../core/view.ts";
import { asText } from "../json/jsonScan.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";

interface Flight {
  readonly answer: Promise<Answer>;
  readonly ending: AbortController;
  readonly deadlineMs: number;
  askers: number;
  hasLanded: boolean;
}

/** A read that is kept by nobody may be meant to see what was written just before: it is not shared. */
const isShared = (question: Question, context: CallContext): boolean =>
  !question.write && question.lifetime !== "never" && !context.fresh;

/**
 * What depends on the head, and an absence, is shared by those who have the same head: another may ask because of a new one, or
 * because the transaction was sent meanwhile.
 */
const keyOf = ({ method, paramsText, block, lifetime, mustExist }: Question, { heads }: View): string => {
  const anchor = lifetime === "head" || lifetime === "byTransaction" ? heads.latest.hash : block?.hash;
  return `${method} ${anchor ?? ""} ${mustExist ? "!" : ""}${asText(paramsText)}`;
};

/** The shared answer, as long as this asker waits for it. */
const waited = (answer: Promise<Answer>, { signal, deadlineMs }: CallContext): Promise<Answer> => {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
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
export const deduplicated = (source: Source): Source => {
  const flights = new Map<string, Flight>();

  const lead = (key: string, question: Question, context: CallContext): Flight => {
    const ending = new AbortController();
    const answer = source.request(question, { ...context, signal: ending.signal });
    const flight: Flight = { answer, ending, deadlineMs: context.deadlineMs, askers: 0, hasLanded: false };
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

  const join = async (key: string, flight: Flight, context: CallContext): Promise<Answer> => {
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

  const request = async (question: Question, context: CallContext): Promise<Answer> => {
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
