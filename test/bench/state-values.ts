import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { runSliced } from "../../src/state/runSliced.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../src/state/store/valueStore.ts";
import type { AccountWrites, WriteSet } from "../../src/state/writeSet.ts";
import { hashOf } from "../support/builders/heads.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import { watchLoop } from "./support/watchLoop.ts";

const CLAIM =
  "A known slot costs at most 200 bytes, and a block of 2,000 written keys holds the thread at most 2 ms at a time";
const MAX_BYTES_PER_SLOT = 200;
const MAX_SLICE_MS = 2;
const CACHE_BYTES = 256 * 1024 * 1024;
const KEYS_PER_BLOCK = 2_000;
const BLOCKS = 300;
const ACCOUNTS_PER_BLOCK = 100;

const word = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;
const address = (value: number): Address => `0x${value.toString(16).padStart(40, "0")}`;
const slotValue = (key: number): Uint8Array => Buffer.from((key * 1_000_003).toString(16).padStart(20, "1"), "hex");

/** Creates the writes of a block to slots from `first` on. */
const writesOf = (first: number): ReadonlyMap<Address, AccountWrites> => {
  const slots = KEYS_PER_BLOCK / ACCOUNTS_PER_BLOCK;
  return new Map(
    Array.from({ length: ACCOUNTS_PER_BLOCK }, (_, account) => [
      address(account),
      {
        slots: new Map(
          Array.from({ length: slots }, (_, slot) => {
            const key = first + account * slots + slot;
            return [word(key), slotValue(key)];
          }),
        ),
      },
    ]),
  );
};

/** Returns the bytes of the heap and outside it, after garbage was collected. */
const createUsedBytes = (): (() => number) => {
  setFlagsFromString("--expose-gc");
  const gc: () => void = runInNewContext("gc");
  return () => {
    gc();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
};

/** Returns the bytes of a slot that a node returned. */
const measureSlots = (slots: number): number => {
  const usedBytes = createUsedBytes();
  const block = { number: 1n, hash: hashOf(1) };
  const before = usedBytes();
  const values = new ValueStore(CACHE_BYTES);
  values.begin(block);
  for (let slot = 0; slot < slots; slot++) {
    const key = { field: "slot", address: address(slot % 1_000), slot: word(slot) } as const;
    values.add(key, block, word(slot).slice(2));
  }
  const bytes = usedBytes() - before;
  if (values.size !== slots) {
    throw new Error(`${values.size} of ${slots} slots are within ${CACHE_BYTES} bytes`);
  }
  return bytes / slots;
};

/** Applies blocks as they arrive from a source. Returns the CPU time of each turn of the event loop. */
const measureSlices = async (): Promise<readonly number[]> => {
  const values = new ValueStore(CACHE_BYTES);
  values.begin({ number: 0n, hash: hashOf(0) });
  const packed = Array.from({ length: BLOCKS }, (_, block) => packWrites(writesOf((block % 100) * KEYS_PER_BLOCK)));
  const ending = new AbortController();
  const gaps = watchLoop(ending.signal);
  await nextTick();
  for (const [index, bytes] of packed.entries()) {
    const block = { number: BigInt(index + 1), hash: hashOf(index + 1) };
    const writeSet: WriteSet = { block, packed: bytes, grade: "checked" };
    await runSliced(values.apply(writeSet));
    await runSliced(values.prune());
    await nextTick();
  }
  ending.abort();
  return (await gaps).toSorted((a, b) => a - b);
};

/** Measures the memory of known slots, and how long write sets hold the thread. `ours` is the memory. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const bytesPerSlot = measureSlots(short ? 200_000 : 1_000_000);
  const gaps = await measureSlices();
  const p99 = gaps[Math.floor(gaps.length * 0.99)] ?? 0;
  return {
    claim: CLAIM,
    ratio: round(Math.min(MAX_BYTES_PER_SLOT / bytesPerSlot, MAX_SLICE_MS / p99)),
    ours: round(bytesPerSlot, 1),
    yardstick: MAX_BYTES_PER_SLOT,
    unit: "bytes a slot",
    sliceP50Ms: round(gaps[gaps.length >> 1] ?? 0, 2),
    sliceP99Ms: round(p99, 2),
    longestSliceMs: round(gaps.at(-1) ?? 0, 2),
  };
};
