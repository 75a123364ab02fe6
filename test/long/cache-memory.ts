import { setImmediate } from "node:timers/promises";
import { createKeyPrefix, requestKey } from "../../src/cache/cacheEntry.ts";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createHeads, hashOf } from "../support/builders/heads.ts";
import { createRequest } from "../support/builders/request.ts";

const KEYS = 10_000_000;
const MIB = 1024 * 1024;
const CACHE_BYTES = 128 * MIB;
/** The process itself, and the garbage of 130,000 new entries a second. Neither depends on the size of the cache. */
const OTHER_BYTES = 278 * MIB;
const LIMIT_BYTES = CACHE_BYTES + OTHER_BYTES;
const MIN_VALUE_BYTES = 60;
const MAX_VALUE_BYTES = 3_060;
const KEYS_A_TURN = 200;
const TURNS_A_SAMPLE = 2_500;
/** Growth from the second quarter to the last one that still counts as flat. */
const MAX_GROWTH = 1.05;

const prefix = createKeyPrefix("chain", 8453, hashOf(0));
const heads = createHeads({ latest: KEYS, finalized: KEYS });

/** Sends ten million distinct requests through a cache of 128 MiB, each twice. Memory must stay bounded and flat. A shorter run checks only the limit. */
export const long = async ({ seconds }: { readonly seconds: number | undefined }) => {
  const memory = new MemoryStore(CACHE_BYTES, createTelemetry({ level: "silent" }));
  const samples: number[] = [];
  const endMs = performance.now() + (seconds ?? Number.POSITIVE_INFINITY) * 1_000;
  let turn = 0;
  for (; turn * KEYS_A_TURN < KEYS && performance.now() < endMs; turn++) {
    for (let item = 0; item < KEYS_A_TURN; item++) {
      const number = turn * KEYS_A_TURN + item;
      const rpcRequest = createRequest({ retention: "final", block: { number: BigInt(number) } });
      const bytes = MIN_VALUE_BYTES + ((number * 7919) % (MAX_VALUE_BYTES - MIN_VALUE_BYTES + 1));
      const body = new Uint8Array(bytes + 40).subarray(39, 39 + bytes);
      const key = requestKey(prefix, rpcRequest, heads) ?? "";
      memory.set(key, { body, isFinal: true, storedAtMs: Date.now() });
      // The second request makes it one of the entries that fill the cache.
      memory.get(key);
    }
    await setImmediate();
    if (turn % TURNS_A_SAMPLE === 0) {
      samples.push(process.memoryUsage.rss());
    }
  }
  const keys = turn * KEYS_A_TURN;
  const quarter = Math.floor(samples.length / 4);
  const most = (part: readonly number[]) => Math.max(...part);
  const growth = most(samples.slice(-quarter)) / most(samples.slice(quarter, 2 * quarter));
  const isWhole = keys >= KEYS;
  const passed = most(samples) <= LIMIT_BYTES && (!isWhole || growth <= MAX_GROWTH);
  const figures = { keys, entries: memory.entries, maxRssMiB: most(samples) / MIB, limitMiB: LIMIT_BYTES / MIB };
  return { passed, ...figures, ...(isWhole && { growth }) };
};
