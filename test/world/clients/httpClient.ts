import { setTimeout as sleep } from "node:timers/promises";
import type { Dispatcher } from "undici";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { HeadOrder } from "../judge/headOrder.ts";
import { headOf } from "../judge/outcome.ts";
import type { Recorder } from "../judge/recorder.ts";
import { REPLICA_HEADER } from "../servers/roundRobin.ts";
import { postCalls, type RpcResponse } from "./postCalls.ts";
import { nextQuestion } from "./questions.ts";

export interface SoakTarget {
  readonly chain: TruthChain;
  /** The endpoint of the chain. */
  readonly url: string;
}

export interface ClientOptions {
  readonly targets: readonly SoakTarget[];
  readonly recorder: Recorder;
  readonly random: (below: number) => number;
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
  /** Limits of the life of a subscription or filter, in milliseconds. */
  readonly life: { readonly minMs: number; readonly maxMs: number };
}

export interface Posted {
  readonly replica: string;
  readonly cacheStatus: string;
  /** The value of `x-forebay-pending`. */
  readonly mode: string | undefined;
  readonly responses: readonly RpcResponse[];
  readonly startMs: number;
  readonly endMs: number;
}

const MAX_BATCH = 16;
const MAX_PAUSE_MS = 10;

/** Sends calls, one alone or several as a batch. Returns undefined if there was no JSON-RPC response. */
export const post = async (
  { url }: SoakTarget,
  calls: readonly ChainCall[],
  dispatcher: Dispatcher,
): Promise<Posted | undefined> => {
  const { headers, responses, failure, startMs, endMs } = await postCalls(url, calls, dispatcher);
  if (failure !== undefined) {
    return undefined;
  }
  const replica = String(headers[REPLICA_HEADER]);
  const cacheStatus = String(headers["cache-status"]);
  const mode = headers["x-forebay-pending"]?.toString();
  return { replica, cacheStatus, mode, responses, startMs, endMs };
};

/** Sends one request after the other, and gives each answer to the recorder. */
export const runHttpClient = async (options: ClientOptions, isBatching: boolean): Promise<void> => {
  const { targets, recorder, random, dispatcher, signal } = options;
  const orders = new Map(targets.map(({ chain }) => [chain, new HeadOrder(chain)]));
  while (!signal.aborted) {
    // Most requests are for the first chain.
    const target = targets[random(4) === 0 ? targets.length - 1 : 0];
    if (target === undefined) {
      return;
    }
    const { chain } = target;
    const calls = Array.from({ length: isBatching ? 2 + random(MAX_BATCH) : 1 }, () => nextQuestion(chain, random));
    const posted = await post(target, calls, dispatcher);
    if (posted === undefined) {
      recorder.unanswered += calls.length;
      continue;
    }
    const { replica, cacheStatus, mode, responses, startMs, endMs } = posted;
    if (mode !== undefined) {
      recorder.mode(mode);
    }
    if (cacheStatus.startsWith("forebay; hit")) {
      recorder.hits += calls.length;
    }
    for (const [index, call] of calls.entries()) {
      const response = responses[index];
      const answer = { call, result: response?.result, error: response?.error, startMs, endMs };
      recorder.answer(chain, answer, `${replica} ${cacheStatus}`, replica);
      const head = headOf(answer);
      const order = orders.get(chain);
      if (head !== undefined && order !== undefined) {
        recorder.head(order, replica, head, answer);
      }
    }
    await sleep(random(MAX_PAUSE_MS));
  }
};
