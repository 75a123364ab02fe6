import { setTimeout as sleep } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { createRandomBelow } from "../../support/builders/randomValues.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { ClientSight, type Score } from "../../truth/score.ts";
import { EMITTER } from "../chain/emitter.ts";
import { SENDERS } from "../chain/openBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { EventBook } from "../judge/eventBook.ts";
import { postCalls } from "./postCalls.ts";
import { nextQuestion } from "./questions.ts";

/** The options of all clients of a scenario. */
export interface TruthClients {
  readonly chain: TruthChain;
  readonly score: Score;
  readonly seed: number;
  /** The instances of the proxy. Requests go to them in turn. */
  readonly urls: () => readonly string[];
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
}

const SINGLE_CLIENTS = 8;
const BATCH_CLIENTS = 2;
const SINGLE_PERIOD_MS = 40;
const BATCH_PERIOD_MS = 250;
const MAX_BATCH = 12;
const FILTER_PERIOD_MS = 400;
/** This client is a wallet: it reads the head and the nonce of one account in turn. */
const WALLET = 0;
const HEAD_CALL: ChainCall = { method: "eth_blockNumber", params: [] };
const WALLET_CALLS: readonly ChainCall[] = [
  HEAD_CALL,
  { method: "eth_getTransactionCount", params: [SENDERS[0], "latest"] },
];
/** More than one client sends in a run. */
const SEEDS_A_CLIENT = 100_000;
const NOT_OFFERED = -32_601;

/** Waits until a time. A client that is late continues at once. */
const waitUntil = async (atMs: number, signal: AbortSignal): Promise<void> => {
  const waitMs = atMs - performance.now();
  if (waitMs > 0) {
    await sleep(waitMs, undefined, { signal }).catch(() => undefined);
  }
};

/**
 * Sends request after request at fixed times. Request number n of a client has the same calls for each proxy: they come from
 * the seed, the client and n.
 */
const runClient = async (clients: TruthClients, index: number, isBatching: boolean): Promise<void> => {
  const { chain, score, seed, urls, dispatcher, signal } = clients;
  const sight = new ClientSight(chain);
  const periodMs = isBatching ? BATCH_PERIOD_MS : SINGLE_PERIOD_MS;
  const startMs = performance.now() + (index * periodMs) / SINGLE_CLIENTS;
  const over = ended(signal);
  for (let count = 0; ; count++) {
    await waitUntil(startMs + count * periodMs, signal);
    if (signal.aborted) {
      return;
    }
    const random = createRandomBelow((seed * SINGLE_CLIENTS * 2 + index) * SEEDS_A_CLIENT + count);
    const calls =
      index === WALLET
        ? [WALLET_CALLS[count % WALLET_CALLS.length] ?? HEAD_CALL]
        : Array.from({ length: isBatching ? 2 + random(MAX_BATCH) : 1 }, () => nextQuestion(chain, random));
    const all = urls();
    const replica = (index + count) % all.length;
    const sentMs = performance.now();
    const posted = await Promise.race([postCalls(all[replica] ?? "", calls, dispatcher), over]);
    if (posted === undefined) {
      score.addOpen(performance.now() - sentMs);
      return;
    }
    score.add(calls, posted, sight, String(replica));
  }
};

const ended = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });

/** Creates a polled filter, and polls it on each instance in turn. A filter that is lost is counted, and created again. */
const runFilter = async (clients: TruthClients, kind: "blockFilter" | "logFilter"): Promise<void> => {
  const { chain, score, urls, dispatcher, signal } = clients;
  const call =
    kind === "logFilter"
      ? { method: "eth_newFilter", params: [{ address: EMITTER }] }
      : { method: "eth_newBlockFilter", params: [] };
  let count = 0;
  const send = (method: string, params: readonly unknown[]) => {
    const all = urls();
    return postCalls(all[count++ % all.length] ?? "", [{ method, params }], dispatcher);
  };
  while (!signal.aborted) {
    const created = await send(call.method, call.params);
    const { result, error } = created.responses[0] ?? {};
    if (error?.code === NOT_OFFERED) {
      score.refuse(call.method);
      return;
    }
    if (typeof result !== "string") {
      score.error(`${call.method}: ${error?.message ?? created.failure}`);
      await waitUntil(performance.now() + FILTER_PERIOD_MS, signal);
      continue;
    }
    const book = new EventBook(kind, chain, created.startMs, created.endMs);
    let lastMs: number | undefined;
    for (;;) {
      await waitUntil(performance.now() + FILTER_PERIOD_MS, signal);
      if (signal.aborted) {
        break;
      }
      const polled = await send("eth_getFilterChanges", [result]);
      const changes = polled.responses[0];
      if (!Array.isArray(changes?.result)) {
        score.error(`eth_getFilterChanges: ${changes?.error?.message ?? polled.failure}`);
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
      score.addFilter(book, lastMs);
    }
  }
};

/** Runs all clients until the signal aborts. */
export const runClients = async (clients: TruthClients): Promise<void> => {
  await Promise.all([
    ...Array.from({ length: SINGLE_CLIENTS }, (_, index) => runClient(clients, index, false)),
    ...Array.from({ length: BATCH_CLIENTS }, (_, index) => runClient(clients, SINGLE_CLIENTS + index, true)),
    runFilter(clients, "blockFilter"),
    runFilter(clients, "logFilter"),
  ]);
};
