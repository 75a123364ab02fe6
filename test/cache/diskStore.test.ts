import assert from "node:assert/strict";
import { test } from "node:test";
import type { CacheEntry } from "../../src/cache/cacheEntry.ts";
import { DiskStore, type EntryStorage } from "../../src/cache/diskStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const MAX_BYTES = 16 * 1024 * 1024;
const KEY = "forebay1:1:00:a";
const ENTRY: CacheEntry = { body: Buffer.from('"value"'), isFinal: true, storedAtMs: 1 };

const telemetry = createTelemetry({ level: "silent" });

/** A folder in memory. */
const createStorage = () => {
  const values = new Map<string, Uint8Array>();
  let reading = Promise.resolve();
  const storage: EntryStorage = {
    isOpen: () => true,
    read: async (keys) => {
      const found = keys.map((key) => values.get(key));
      await reading;
      return found;
    },
    write: async (changes) => {
      for (const { key, value } of changes) {
        if (value === undefined) {
          values.delete(key);
        } else {
          values.set(key, value);
        }
      }
    },
  };
  return {
    storage,
    /** Further reads return what they have found when `until` resolves. */
    holdReads: (until: Promise<void>) => {
      reading = until;
    },
  };
};

const createStored = async () => {
  const { storage, holdReads } = createStorage();
  const disk = new DiskStore(storage, MAX_BYTES, telemetry);
  disk.set(KEY, ENTRY, 60);
  await disk.close();
  return { disk, holdReads };
};

test("an entry is not found while its removal waits to be written, nor after", async () => {
  const { disk } = await createStored();
  assert.deepEqual((await disk.get(KEY))?.body, ENTRY.body);
  disk.delete(KEY);
  disk.delete(KEY);
  assert.equal(await disk.get(KEY), undefined);
  await disk.close();
  assert.equal(await disk.get(KEY), undefined);
  disk.set(KEY, ENTRY, 60);
  await disk.close();
  assert.deepEqual((await disk.get(KEY))?.body, ENTRY.body);
});

test("a folder that does not answer holds the end of the process for 2 s at most", async () => {
  const never = new Promise<never>(() => undefined);
  const disk = new DiskStore({ isOpen: () => true, read: () => never, write: () => never }, MAX_BYTES, telemetry);
  disk.delete(KEY);
  const startMs = performance.now();
  await disk.close();
  assert.ok(performance.now() - startMs >= 1_900);
});

test("a read in flight does not return an entry that is removed meanwhile", async () => {
  const { disk, holdReads } = await createStored();
  const { promise, resolve } = Promise.withResolvers<void>();
  holdReads(promise);
  const read = disk.get(KEY);
  await new Promise(setImmediate);
  disk.delete(KEY);
  await disk.close();
  const joined = disk.get(KEY);
  resolve();
  assert.deepEqual(await Promise.all([read, joined]), [undefined, undefined]);
});
