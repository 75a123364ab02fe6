import { setTimeout as sleep } from "node:timers/promises";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const WHOLE_SECONDS = 60;
const MAX_STALL_MS = 1_500;
const CLIENTS = 16;
const PAUSE_MS = 5;
/** Each round: the node responds, and then hangs, for this long. */
const ROUND_MS = 10_000;
const MAX_SHOWN = 5;

interface Load {
  answered: number;
  longestMs: number;
  readonly failures: string[];
}

const addressOf = (at: number): string => `0x${at.toString(16).padStart(40, "0")}`;

/** Reads that no cache answers. */
const READS: readonly ((at: number) => readonly [method: string, params: readonly unknown[]])[] = [
  (at) => ["eth_getBalance", [addressOf(at), "latest"]],
  (at) => ["eth_call", [{ to: addressOf(at) }, "latest"]],
  (at) => ["eth_getStorageAt", [addressOf(at), "0x0", "0x10"]],
  (at) => ["eth_getLogs", [{ address: addressOf(at), fromBlock: "0x10", toBlock: "0x20" }]],
];

/** Clients that read until the signal is aborted, each one request after the other. */
const readAlways = async (url: string, load: Load, signal: AbortSignal): Promise<void> => {
  const client = async (index: number): Promise<void> => {
    for (let at = 1; !signal.aborted; at += 1) {
      const [method, params] = READS[at % READS.length]?.(at * CLIENTS + index) ?? ["eth_chainId", []];
      const startedMs = performance.now();
      const answer = await rpc(url, method, params).catch(String);
      load.longestMs = Math.max(load.longestMs, performance.now() - startedMs);
      if (typeof answer !== "string" && answer.status === 200 && answer.body.result !== undefined) {
        load.answered += 1;
      } else {
        load.failures.push(`${method} ${typeof answer === "string" ? answer : answer.text.slice(0, 200)}`);
      }
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
};

/**
 * One of two nodes accepts requests and never answers: from the start of the service, and again and again in the middle.
 * No read fails, and none takes longer than 1.5 s.
 */
export const long = async ({ seconds = WHOLE_SECONDS }: { readonly seconds: number | undefined }) => {
  const chain = createFakeChain({ height: 100 });
  const handlers = { eth_call: () => "0x" };
  const [hanging, healthy] = await Promise.all([
    createFakeNode({ chain, handlers }),
    createFakeNode({ chain, handlers }),
  ]);
  const nodes = [
    { name: "hanging", url: hanging.url },
    { name: "healthy", url: healthy.url },
  ];
  const run = async (act: (isOver: () => boolean) => Promise<void>, durationMs: number) => {
    const service = await createService({ nodes, verify: "cheap" });
    const load: Load = { answered: 0, longestMs: 0, failures: [] };
    const stopping = new AbortController();
    const endMs = performance.now() + durationMs;
    const reading = readAlways(service.url, load, stopping.signal);
    await act(() => performance.now() >= endMs);
    stopping.abort();
    await reading;
    const hedges = await metric(service.opsUrl, "forebay_upstream_hedges_total");
    const retries = await metric(service.opsUrl, "forebay_upstream_retries_total");
    await service.close();
    const { answered, failures, longestMs } = load;
    return {
      answered,
      failed: failures.length,
      longestMs: Math.round(longestMs),
      hedges,
      retries,
      failures: failures.slice(0, MAX_SHOWN),
    };
  };
  const partMs = (seconds * 1_000) / 2;
  hanging.faults.answer = "hang";
  const fromStart = await run(() => sleep(partMs), partMs);
  hanging.faults.answer = undefined;
  const inMiddle = await run(async (isOver) => {
    while (!isOver()) {
      hanging.faults.answer = undefined;
      await sleep(ROUND_MS / 2);
      hanging.faults.answer = "hang";
      await sleep(ROUND_MS / 2);
    }
  }, partMs);
  await Promise.all([hanging.close(), healthy.close()]);
  const parts = [fromStart, inMiddle];
  return {
    name: "hung-node",
    passed: parts.every(({ failed, longestMs }) => failed === 0 && longestMs <= MAX_STALL_MS),
    fromStart,
    inMiddle,
    maxStallMs: MAX_STALL_MS,
  };
};
