import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "../bench/support/child.ts";
import {
  CONNECTIONS,
  FLASHBLOCK_MS,
  LOGS_A_FLASHBLOCK,
  PERSONS,
  SUBSCRIPTIONS_EACH,
} from "./support/subscribersShape.ts";

/** After a collection, 19.6 kB are used. Runs of one tree differ by 1.2 kB of resident memory: 30.8 to 31.8 kB. */
const MAX_USED_BYTES = 20_000;
const MAX_RESIDENT_BYTES = 33_000;
/** A delivery may wait for the next flashblock, but not longer. Otherwise the server is too slow. */
const MAX_P99_MS = FLASHBLOCK_MS;
const SECONDS = 60;

interface Delays {
  readonly deliveries: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

interface End {
  readonly incomplete: number;
  readonly outOfOrder: number;
  readonly closed: number;
}

/** Opens 5,000 connections with 20,000 subscriptions. Every 200 ms a flashblock has 20 logs, each for 50 subscriptions. */
export const long = async ({ seconds = SECONDS }: { readonly seconds?: number }) => {
  const server = startChild("../../long/support/subscribersServer.ts");
  try {
    const port = (await server.message()) as number;
    const memory = async () => {
      server.send({ ask: "memory" });
      return (await server.message()) as { residentBytes: number; usedBytes: number };
    };
    const empty = await memory();
    const [fast, slow] = ["fast", "slow"].map((speed) =>
      startChild("../../long/support/subscribersClients.ts", [String(port), speed]),
    );
    if (!fast || !slow) {
      throw new Error("no clients");
    }
    try {
      const opened = (await Promise.all([fast.message(), slow.message()])) as { subscriptions: number }[];
      const full = await memory();
      const delays = async (): Promise<Delays> => {
        fast.send({ ask: "delays" });
        return (await fast.message()) as Delays;
      };
      server.send({ ask: "start", everyMs: FLASHBLOCK_MS });
      await sleep((seconds * 1_000) / 2);
      const allFast = await delays();
      slow.send({ ask: "slow" });
      await sleep((seconds * 1_000) / 2);
      const withSlow = await delays();
      server.send({ ask: "stop" });
      const { counts, slowClosed } = (await server.message()) as { counts: readonly number[]; slowClosed: number };
      for (const clients of [fast, slow]) {
        clients.send({ ask: "end", counts });
      }
      const ends = (await Promise.all([fast.message(), slow.message()])) as End[];
      const sum = (field: keyof End) => ends.reduce((total, end) => total + end[field], 0);
      const end: End = { incomplete: sum("incomplete"), outOfOrder: sum("outOfOrder"), closed: sum("closed") };
      const perConnection = (before: number, after: number) => Math.round((after - before) / CONNECTIONS);
      const residentBytes = perConnection(empty.residentBytes, full.residentBytes);
      const usedBytes = perConnection(empty.usedBytes, full.usedBytes);
      const sent = counts.reduce((sum, count) => sum + count, 0);
      return {
        claim: "subscribers",
        passed:
          end.incomplete + end.outOfOrder + end.closed + slowClosed === 0 &&
          usedBytes < MAX_USED_BYTES &&
          residentBytes < MAX_RESIDENT_BYTES &&
          withSlow.p99Ms < MAX_P99_MS,
        connections: CONNECTIONS,
        subscriptions: opened.reduce((total, { subscriptions }) => total + subscriptions, 0),
        logs: sent,
        deliveries: (sent * CONNECTIONS * SUBSCRIPTIONS_EACH) / PERSONS,
        logsAFlashblock: LOGS_A_FLASHBLOCK,
        ...end,
        slowClosed,
        residentBytesAConnection: residentBytes,
        usedBytesAConnection: usedBytes,
        allFast,
        withSlow,
      };
    } finally {
      await Promise.all([fast.end(), slow.end()]);
    }
  } finally {
    await server.end();
  }
};
