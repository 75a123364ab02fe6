import { setTimeout as sleep } from "node:timers/promises";
import { EMITTER } from "../chain/emitter.ts";
import { EventBook } from "../judge/eventBook.ts";
import { NOT_OFFERED } from "../judge/recorder.ts";
import { REDIS_TIMEOUT_MS } from "../proxies/forebayProxy.ts";
import { PAUSED_REDIS } from "../scenarios/scenario.ts";
import { type ClientOptions, drawLife } from "./clientOptions.ts";
import { postCalls } from "./postCalls.ts";

const POLL_MS = 400;
/** If processes wait as long, Redis may miss the deadline of the replicas. A new filter is then local too. */
const SLOW_REDIS_MS = REDIS_TIMEOUT_MS / 4;

const pause = (signal: AbortSignal): Promise<void> => sleep(POLL_MS, undefined, { signal }).catch(() => undefined);

/** Creates a polled filter, polls it on each instance in turn, and creates the next one. */
export const runFilterClient = async (options: ClientOptions, kind: "blockFilter" | "logFilter"): Promise<void> => {
  const { recorder, random, signal, load } = options;
  const [{ chain, instances }] = options.targets;
  const call =
    kind === "logFilter"
      ? { method: "eth_newFilter", params: [{ address: EMITTER }] }
      : { method: "eth_newBlockFilter", params: [] };
  let count = 0;
  const send = (method: string, params: readonly unknown[]) => {
    const all = instances();
    return postCalls(all[count++ % all.length]?.url ?? "", [{ method, params }], options.dispatcher);
  };
  while (!signal.aborted) {
    const created = await send(call.method, call.params);
    const { result, error } = created.responses[0] ?? {};
    if (error?.code === NOT_OFFERED) {
      recorder.refuse(call.method);
      return;
    }
    if (typeof result !== "string") {
      recorder.error(`${call.method}: ${error?.message ?? created.failure}`, created.failure !== undefined);
      await pause(signal);
      continue;
    }
    const isRedisLate = (sinceMs: number): boolean =>
      recorder.wasActive(PAUSED_REDIS, sinceMs) || chain.lagBound.wasSlow(sinceMs, SLOW_REDIS_MS);
    // Another instance does not know a local filter.
    const isLocal = isRedisLate(created.startMs);
    const book = new EventBook(kind, chain, created.startMs, created.endMs);
    const closeMs = performance.now() + drawLife(load, random);
    let lastMs: number | undefined;
    while (performance.now() < closeMs) {
      await pause(signal);
      if (signal.aborted) {
        break;
      }
      const polled = await send("eth_getFilterChanges", [result]);
      const changes = polled.responses[0];
      if (!Array.isArray(changes?.result)) {
        const message = changes?.error?.message ?? polled.failure ?? "no response";
        const isExpected = polled.failure !== undefined || isLocal || isRedisLate(polled.startMs);
        recorder.error(`eth_getFilterChanges: ${message}`, isExpected);
        if (polled.failure === undefined && !message.includes("filter not found")) {
          continue;
        }
        // The events of a lost response are lost with it.
        lastMs = polled.failure === undefined ? lastMs : undefined;
        break;
      }
      for (const event of changes.result) {
        book.add(event, polled.endMs);
      }
      lastMs = polled.startMs;
    }
    if (lastMs !== undefined) {
      recorder.end(book, lastMs, kind);
    }
  }
};
