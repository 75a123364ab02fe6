import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { createRandomBelow } from "../../support/builders/randomValues.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { SENDERS } from "../chain/openBlock.ts";
import { ClientSight } from "../judge/recorder.ts";
import type { ClientOptions, Clients } from "./clientOptions.ts";
import { runFilterClient } from "./filterClient.ts";
import { postCalls } from "./postCalls.ts";
import { nextQuestion } from "./questions.ts";
import { runSocketClient } from "./socketClient.ts";

const SINGLE_CLIENTS = 8;
const BATCH_CLIENTS = 2;
const SINGLE_PERIOD_MS = 40;
const BATCH_PERIOD_MS = 250;
const MAX_BATCH = 12;
/** This client is a wallet: it reads the head and the nonce of one account in turn. */
const WALLET = 0;
const HEAD_CALL: ChainCall = { method: "eth_blockNumber", params: [] };
const WALLET_CALLS: readonly ChainCall[] = [
  HEAD_CALL,
  { method: "eth_getTransactionCount", params: [SENDERS[0], "latest"] },
];
/** More than one client sends in a run. */
const SEEDS_A_CLIENT = 100_000;
/** One request in this number is for another chain than the first. */
const OTHER_SHARE = 4;

/** Waits until a time. A client that is late continues at once. */
const waitUntil = async (atMs: number, signal: AbortSignal): Promise<void> => {
  const waitMs = atMs - performance.now();
  if (waitMs > 0) {
    await sleep(waitMs, undefined, { signal }).catch(() => undefined);
  }
};

const ended = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });

/**
 * Sends request after request at fixed times. Request number n of a client has the same calls for each proxy: they come from
 * the seed, the client and n.
 */
const runClient = async (options: ClientOptions, index: number, isBatching: boolean): Promise<void> => {
  const { targets, recorder, seed, load, dispatcher, signal } = options;
  const sights = new Map(targets.map(({ chain }) => [chain, new ClientSight(chain)]));
  const periodMs = (isBatching ? BATCH_PERIOD_MS : SINGLE_PERIOD_MS) / load.pace;
  let dueMs = performance.now() + (index * periodMs) / SINGLE_CLIENTS;
  const over = ended(signal);
  for (let count = 0; ; count++) {
    await waitUntil(dueMs, signal);
    if (signal.aborted) {
      return;
    }
    dueMs += periodMs;
    const random = createRandomBelow((seed * SINGLE_CLIENTS * 2 + index) * SEEDS_A_CLIENT + count);
    const isOther = targets.length > 1 && random(OTHER_SHARE) === 0;
    const { chain, instances } = (isOther ? targets[1] : undefined) ?? targets[0];
    const calls =
      index === WALLET
        ? [WALLET_CALLS[count % WALLET_CALLS.length] ?? HEAD_CALL]
        : Array.from({ length: isBatching ? 2 + random(MAX_BATCH) : 1 }, () => nextQuestion(chain, random));
    const all = instances();
    const { label, url } = all[(index + count) % all.length] ?? { label: "", url: "" };
    const sentMs = performance.now();
    const posted = await Promise.race([postCalls(url, calls, dispatcher), over]);
    const sight = sights.get(chain);
    if (posted === undefined || sight === undefined) {
      recorder.addOpen(performance.now() - sentMs);
      return;
    }
    recorder.add(chain, calls, posted, sight, label);
  }
};

/** Runs all clients until the signal aborts. */
export const runClients = async (clients: Clients, signal: AbortSignal): Promise<void> => {
  const { seed, load } = clients;
  const dispatcher = new Agent({ connections: 64 });
  let count = 0;
  const options = (): ClientOptions => ({
    ...{ ...clients, dispatcher, signal },
    random: createRandomBelow(seed * SINGLE_CLIENTS + count++),
  });
  try {
    await Promise.all([
      ...Array.from({ length: SINGLE_CLIENTS }, (_, index) => runClient(options(), index, false)),
      ...Array.from({ length: BATCH_CLIENTS }, (_, index) => runClient(options(), SINGLE_CLIENTS + index, true)),
      ...Array.from({ length: load.sockets }, () => runSocketClient(options())),
      runFilterClient(options(), "blockFilter"),
      runFilterClient(options(), "logFilter"),
    ]);
  } finally {
    await dispatcher.destroy();
  }
};
