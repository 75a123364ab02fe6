import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate as nextTick } from "node:timers/promises";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { type PackedParts, packSnapshot, type SnapshotChain } from "../../src/state/snapshot/packSnapshot.ts";
import { restoreSnapshot } from "../../src/state/snapshot/restoreSnapshot.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { ValueStore } from "../../src/state/store/valueStore.ts";
import { createCost } from "../state/costRig.ts";
import { hashOf } from "../support/builders/heads.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import { threadCpuMs } from "./support/threadCpu.ts";
import { watchLoop } from "./support/watchLoop.ts";

const CLAIM =
  "A snapshot of 1,000,000 values has at most 100 MB, holds the thread at most 5 ms at a time, and is restored with 2 s of CPU";
const VALUES = 1_000_000;
const SHORT_VALUES = 100_000;
const MAX_BYTES = 100_000_000;
const MAX_TURN_MS = 5;
const MAX_RESTORE_MS = 2_000;
const CACHE_BYTES = 256 * 1024 * 1024;
/** Keys that clients read lately: as many as are remembered. */
const USED_SHARE = 0.1;
/** Of ten values, seven are slots. */
const FIELDS = ["balance", "nonce", "code"] as const;
const SLOTS = 7;

const BLOCK = { number: 7n, hash: hashOf(7) };
const CHAIN: SnapshotChain = {
  chainId: "1",
  genesis: hashOf(0),
  rules: "rules",
  nodes: [{ name: "own", address: "a" }],
};

const word = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;
const address = (value: number): Address => `0x${(value * 2_654_435_761).toString(16).padStart(40, "0")}`;

const keyOf = (index: number): StateKey => {
  const part = index % (FIELDS.length + SLOTS);
  const field = FIELDS[part] ?? "slot";
  const slot = field === "slot" ? word(index * 31) : undefined;
  return { field, address: address(Math.floor(index / (FIELDS.length + SLOTS))), slot };
};

const createParts = (): PackedParts => {
  const values = new ValueStore(CACHE_BYTES);
  const { cost } = createCost({ used: values.used });
  return { values, cost, answers: undefined, headers: [] };
};

const createKnown = (count: number): PackedParts => {
  const parts = createParts();
  parts.values.begin(BLOCK);
  for (let index = 0; index < count; index++) {
    const key = keyOf(index);
    parts.values.add(key, BLOCK, word(index + 1).slice(2));
    if (index < count * USED_SHARE) {
      parts.values.used.record(key, BLOCK.number, String(index % 10));
    }
  }
  return parts;
};

/** Packs as forebay does, which writes each chunk and drops it. */
const pack = async (parts: PackedParts, onChunk: (chunk: Uint8Array) => void = () => undefined): Promise<void> => {
  for await (const chunk of packSnapshot(parts, CHAIN, { maxBytes: 2 * MAX_BYTES, isCurrent: () => true })) {
    onChunk(chunk);
    await nextTick();
  }
};

/** Yields chunks as the data folder does, each in a turn of its own. */
const chunksOf = async function* (chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  for (const chunk of chunks) {
    await nextTick();
    yield chunk;
  }
};

const restore = async (chunks: readonly Uint8Array[]): Promise<PackedParts> => {
  const parts = createParts();
  await restoreSnapshot(chunksOf(chunks), CHAIN, parts, {
    findBlock: async () => BLOCK,
    begin: (block) => {
      parts.values.begin(block);
      return true;
    },
    drop: () => parts.values.clear(),
    answers: undefined,
    addHeaders: () => undefined,
    isCurrent: () => true,
  });
  return parts;
};

interface Watched {
  /** The CPU time of the longest turn of the event loop. */
  readonly longestMs: number;
  /** The longest pause of the garbage collection, by the time of day: other load counts. It is part of a turn. */
  readonly longestGcMs: number;
  readonly p99Ms: number;
}

const watched = async (run: () => Promise<unknown>): Promise<Watched> => {
  const pauses: number[] = [0];
  const observer = new PerformanceObserver((list) => pauses.push(...list.getEntries().map(({ duration }) => duration)));
  observer.observe({ entryTypes: ["gc"] });
  const ending = new AbortController();
  const watching = watchLoop(ending.signal);
  await nextTick();
  await run();
  ending.abort();
  const turns = (await watching).toSorted((a, b) => a - b);
  observer.disconnect();
  return {
    longestMs: round(turns.at(-1) ?? 0, 2),
    longestGcMs: round(Math.max(...pauses), 2),
    p99Ms: round(turns[Math.floor(turns.length * 0.99)] ?? 0, 2),
  };
};

const cpuOf = async (run: () => Promise<unknown>): Promise<number> => {
  const beforeMs = threadCpuMs();
  await run();
  return threadCpuMs() - beforeMs;
};

/** Packs known values and restores them. `ours` is the CPU time of restoring. The ratio is that of the limit that is met least. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const count = short ? SHORT_VALUES : VALUES;
  const known = createKnown(count);
  const packed = await watched(() => pack(known));
  const packMs = await cpuOf(() => pack(known));
  const chunks: Uint8Array[] = [];
  await pack(known, (chunk) => chunks.push(chunk));
  const restored = await watched(async () => {
    const { values } = await restore(chunks);
    if (values.size !== count) {
      throw new Error(`${values.size} of ${count} values are restored`);
    }
  });
  const restoreMs = (await cpuOf(() => restore(chunks))) * (VALUES / count);
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0) * (VALUES / count);
  const turnMs = Math.max(packed.longestMs, restored.longestMs);
  return {
    claim: CLAIM,
    ratio: round(Math.min(MAX_RESTORE_MS / restoreMs, MAX_TURN_MS / turnMs, MAX_BYTES / bytes)),
    ours: round(restoreMs),
    yardstick: MAX_RESTORE_MS,
    unit: "ms of CPU to restore",
    packMs: round(packMs * (VALUES / count)),
    megabytes: round(bytes / 1_000_000, 1),
    packLongestMs: packed.longestMs,
    packLongestGcMs: packed.longestGcMs,
    packP99Ms: packed.p99Ms,
    restoreLongestMs: restored.longestMs,
    restoreLongestGcMs: restored.longestGcMs,
    restoreP99Ms: restored.p99Ms,
  };
};
