import { setTimeout as sleep } from "node:timers/promises";
import { PAUSED_REDIS, REDIS_TIMEOUT_MS } from "../../soak/faults.ts";
import { EMITTER } from "../chain/emitter.ts";
import { EventBook } from "../judge/eventBook.ts";
import { type ClientOptions, post } from "./httpClient.ts";

const MAX_POLL_MS = 700;
/** If processes wait as long, Redis may miss the deadline of the replicas. A new filter is then local too. */
const SLOW_REDIS_MS = REDIS_TIMEOUT_MS / 4;

/** Creates a polled filter, polls it on any replica, and creates the next. */
export const runFilterClient = async (options: ClientOptions, kind: "blockFilter" | "logFilter"): Promise<void> => {
  const { targets, recorder, random, dispatcher, signal, life } = options;
  const [target] = targets;
  while (!signal.aborted && target !== undefined) {
    const call =
      kind === "logFilter"
        ? { method: "eth_newFilter", params: [{ address: EMITTER }] }
        : { method: "eth_newBlockFilter", params: [] };
    const created = await post(target, [call], dispatcher);
    const id = created?.responses[0]?.result;
    if (created === undefined || typeof id !== "string") {
      await sleep(random(MAX_POLL_MS));
      continue;
    }
    const isLocal =
      recorder.wasActive(PAUSED_REDIS, created.startMs) ||
      target.chain.lagBound.wasSlow(created.startMs, SLOW_REDIS_MS);
    const book = new EventBook(kind, target.chain, created.startMs, created.endMs);
    const closeMs = performance.now() + life.minMs + random(life.maxMs - life.minMs);
    const endMs = await pollUntil(options, { book, id, isLocal, closeMs });
    if (endMs !== undefined) {
      recorder.end(book, endMs, kind);
    }
  }
};

interface Poll {
  readonly book: EventBook;
  readonly id: string;
  /** Another replica may not know the filter. */
  readonly isLocal: boolean;
  readonly closeMs: number;
}

/** Polls. Returns the time of the last poll; undefined if a response was lost, and its events with it. */
const pollUntil = async (
  { targets, recorder, random, dispatcher, signal }: ClientOptions,
  { book, id, isLocal, closeMs }: Poll,
): Promise<number | undefined> => {
  const [target] = targets;
  let lastMs: number | undefined;
  while (target !== undefined && !signal.aborted && performance.now() < closeMs) {
    await sleep(random(MAX_POLL_MS));
    const posted = await post(target, [{ method: "eth_getFilterChanges", params: [id] }], dispatcher);
    const [response] = posted?.responses ?? [];
    if (posted === undefined || response === undefined) {
      recorder.unanswered++;
      return undefined;
    }
    if (Array.isArray(response.result)) {
      for (const event of response.result) {
        book.add(event, posted.endMs);
      }
      lastMs = posted.startMs;
    } else if (response.error?.message.includes("filter not found") === true) {
      if (!isLocal) {
        recorder.find("lost", `${book.kind}: the filter is gone on ${posted.replica}`);
      }
      return undefined;
    }
  }
  return lastMs;
};
