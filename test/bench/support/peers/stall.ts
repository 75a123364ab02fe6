import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "../child.ts";
import type { Peer } from "./peer.ts";

const CLIENTS = 16;
const PAUSE_MS = 5;
/** Few blocks, so that the nodes start quickly. */
const BLOCKS = "4";
const HEALTHY_MS = 1_000;

export interface Stall {
  /** The longest wait for a response, also of requests without one at the end. */
  readonly longestSeconds: number;
  readonly failed: number;
}

/** Clients that read until the signal aborts, each one request after the other. */
const readUntil = async (url: string, signal: AbortSignal): Promise<Stall> => {
  let failed = 0;
  let longestMs = 0;
  const client = async (index: number): Promise<void> => {
    for (let at = 0; !signal.aborted; at += 1) {
      const data = `0x${(at * CLIENTS + index).toString(16).padStart(8, "0")}`;
      const params = [{ to: `0x${"22".repeat(20)}`, data }, "latest"];
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_call", params });
      const headers = { "content-type": "application/json" };
      const startMs = performance.now();
      const text = await fetch(url, { method: "POST", headers, body, signal })
        .then((response) => response.text())
        .catch(String);
      longestMs = Math.max(longestMs, performance.now() - startMs);
      failed += text.includes('"result"') || signal.aborted ? 0 : 1;
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
  return { longestSeconds: longestMs / 1_000, failed };
};

/** Stops one of two nodes: its connections stay open, new ones are accepted, and it never answers. */
export const measureStall = async (peer: Peer, durationMs: number): Promise<Stall> => {
  const nodes = [0, 1].map(() => startChild("verifiedNode.ts", [BLOCKS]));
  const ports = await Promise.all(nodes.map(async (node) => Number(await node.message())));
  const hung = nodes[0]?.pid ?? 0;
  const server = await peer.start(ports);
  const stop = new AbortController();
  try {
    const reading = readUntil(`http://127.0.0.1:${server.port}${server.path}`, stop.signal);
    await sleep(HEALTHY_MS);
    process.kill(hung, "SIGSTOP");
    await sleep(durationMs);
    stop.abort();
    return await reading;
  } finally {
    stop.abort();
    process.kill(hung, "SIGCONT");
    await server.end();
    await Promise.all(nodes.map((node) => node.end()));
  }
};
