import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { defaultBudgetBytes } from "../../src/limits/memoryBudget.ts";
import { type Child, startChild } from "../bench/support/child.ts";
import { startConfigured } from "../bench/support/forebay.ts";
import { median, quantile, round } from "../bench/support/result.ts";
import { untilReady } from "../support/servers/command.ts";
import type { LongOptions } from "./support/longOptions.ts";

/**
 * All attacks at once: stalled bodies, clients that read nothing over HTTP and WebSocket, endless loops, pipelined calls, clients
 * that disconnect. Also batches of small results, large return data, many filters and subscriptions, and many state reads. And bodies
 * and messages in pieces of one byte, and readers that read nothing of many events.
 * After them `proofs`: a client that requires proven answers about large blocks.
 * Resident memory must stay below idle memory, cache, budget and a constant. Another client must get all its responses.
 */
const MIB = 1024 * 1024;
/**
 * The part of a container's memory that the heap of Node.js takes at most. A machine with much more memory lets garbage of hundreds
 * of MiB wait, so that without this limit the run would measure the machine.
 */
const HEAP_SHARE = 0.5;
const USUAL_IDLE_MIB = 100;
const MAX_BESIDE_MIB = 100;
/** `LIMIT_MIB=1024`: the sizes of cache and budget are the defaults in a container with that limit, which bounds the memory. */
const CONTAINER_MIB = Number(process.env.LIMIT_MIB ?? 0);
const CACHE_MIB = CONTAINER_MIB === 0 ? 64 : 128;
const BUDGET_MIB =
  CONTAINER_MIB === 0
    ? 128
    : defaultBudgetBytes({ limitBytes: CONTAINER_MIB * MIB, totalBytes: CONTAINER_MIB * MIB }, CACHE_MIB * MIB) / MIB;
const DEFAULT_SECONDS = 30;
const PAUSE_MS = 20;
const PAGE_BYTES = 4_096;
/** Names of attacks, to measure some of them: ATTACKS="pipeline leave". Default: all at once. */
const ONLY = (process.env.ATTACKS ?? "").split(" ").filter((name) => name !== "");
const CLIENT = "198.51.100.1";

const residentMiB = (pid: number): number =>
  (Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES) / MIB;

/** Two cores: the attackers are on the second one. Without taskset, they are on both. */
const pin = (pid: number): void => {
  try {
    execFileSync("taskset", ["-apc", "1", String(pid)], { stdio: "ignore" });
  } catch {
    console.error("the attackers are not pinned to a core");
  }
};

interface Observed {
  readonly cachedMs: readonly number[];
  readonly uncachedMs: readonly number[];
  readonly failed: number;
  readonly peakMiB: number;
}

/** Sends a cached read and an uncached one after each pause, as another client. */
const observe = async (port: number, pid: number, seconds: number, firstAddress: number): Promise<Observed> => {
  const agent = new Agent();
  const cachedMs: number[] = [];
  const uncachedMs: number[] = [];
  let failed = 0;
  let peakMiB = 0;
  const read = async (address: number, durations: number[]): Promise<void> => {
    const params = [`0x${address.toString(16).padStart(40, "0")}`, "0x1"];
    const startMs = performance.now();
    const { statusCode, body } = await request(`http://127.0.0.1:${port}`, {
      method: "POST",
      dispatcher: agent,
      headers: { "content-type": "application/json", "x-forwarded-for": CLIENT },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBalance", params }),
    });
    const text = await body.text();
    durations.push(performance.now() - startMs);
    failed += statusCode === 200 && text.includes('"result"') ? 0 : 1;
  };
  await read(1, []);
  const endMs = performance.now() + seconds * 1_000;
  for (let address = firstAddress; performance.now() < endMs; address++) {
    await read(1, cachedMs);
    await read(address, uncachedMs);
    peakMiB = Math.max(peakMiB, residentMiB(pid));
    await sleep(PAUSE_MS);
  }
  await agent.close();
  return { cachedMs, uncachedMs, failed, peakMiB };
};

const limitOf = (idleMiB: number): number =>
  CONTAINER_MIB === 0 ? idleMiB + CACHE_MIB + BUDGET_MIB + MAX_BESIDE_MIB : CONTAINER_MIB;

interface Attacked {
  readonly port: number;
  readonly pid: number;
  readonly seconds: number;
  /** Starts the process of the attackers. */
  attack(): Child;
}

const quantilesOf = (name: string, before: readonly number[], during: readonly number[]) => ({
  [`${name}MedianMs`]: [before, during].map((values) => round(median(values), 1)),
  [`${name}P99Ms`]: [before, during].map((values) => round(quantile(values, 0.99), 1)),
});

/** Observes another client before an attack, and during it. */
const measure = async ({ port, pid, seconds, attack }: Attacked) => {
  const before = await observe(port, pid, seconds / 3, 0x1000);
  const idleMiB = residentMiB(pid);
  const attackers = attack();
  pin(attackers.pid);
  await attackers.message();
  const during = await observe(port, pid, seconds, 0x100_000);
  await attackers.end();
  const limitMiB = limitOf(idleMiB);
  return {
    idleMiB: round(idleMiB, 0),
    peakMiB: round(during.peakMiB, 0),
    limitMiB: round(limitMiB, 0),
    ...quantilesOf("cached", before.cachedMs, during.cachedMs),
    ...quantilesOf("uncached", before.uncachedMs, during.uncachedMs),
    reads: during.uncachedMs.length,
    failed: during.failed,
    passed: during.failed === 0 && during.peakMiB < limitMiB,
  };
};

const PROVEN_BLOCKS = 256;
const ALL = [
  ...["stallBodies", "readNothing", "openSockets", "pipeline", "leave", "simulate", "batches", "returnData", "filters"],
  ...["stateReads", "chunks", "frames", "logs", "receipts"],
];

/** Runs attacks on forebay in front of these nodes. */
const attackOn = async (seconds: number, names: readonly string[], nodes: readonly Child[], chain: object) => {
  process.env.NODE_OPTIONS = `--max-old-space-size=${Math.floor(limitOf(USUAL_IDLE_MIB) * HEAP_SHARE)}`;
  const forebay = await startConfigured({
    chains: [{ name: "main", forks: "prague", state: { follow: false }, ...chain }],
    server: { port: 0, opsPort: 0, memoryBudgetBytes: BUDGET_MIB * MIB },
    cache: { memoryBytes: CACHE_MIB * MIB },
    access: { trustedProxies: ["127.0.0.1"] },
  });
  const { port } = forebay;
  const [pid = 0] = forebay.pids;
  await untilReady(forebay);
  const attack = () => startChild("../../long/support/attackClients.ts", [String(port), ...names]);
  const measured = await measure({ port, pid, seconds, attack });
  await Promise.all([forebay, ...nodes].map((each) => each.end()));
  return measured;
};

/** Three origins agree on the head. */
const attackWithProofs = async (seconds: number) => {
  const nodes = [0, 1, 2].map(() => startChild("verifiedNode.ts", [String(PROVEN_BLOCKS)]));
  const ports = await Promise.all(nodes.map((node) => node.message()));
  const origins = ports.map((port, index) => ({ url: `http://127.0.0.1:${port}`, provider: `operator${index}` }));
  return attackOn(seconds, ["proofs"], nodes, { nodes: origins, pending: { mode: "node" } });
};

const attackAtOnce = async (seconds: number, names: readonly string[]) => {
  const node = startChild("../../long/support/attackedNode.ts");
  const { url }: { url?: string } = Object(await node.message());
  return attackOn(seconds, names, [node], { nodes: [{ url }], verify: "off" });
};

export const long = async ({ seconds = DEFAULT_SECONDS }: LongOptions) => {
  const chosen = ONLY.length === 0 ? [...ALL, "proofs"] : ONLY;
  const others = chosen.filter((name) => name !== "proofs");
  const measured = others.length === 0 ? undefined : await attackAtOnce(seconds, others);
  const proofs = chosen.includes("proofs") ? await attackWithProofs(seconds) : undefined;
  return {
    claim:
      "attacks: resident memory stays below its limit (idle, cache, budget and 100 MiB); another client gets all responses",
    seconds,
    ...measured,
    proofs,
    passed: measured?.passed !== false && proofs?.passed !== false,
  };
};
