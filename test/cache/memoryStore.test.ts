import assert from "node:assert/strict";
import { test } from "node:test";
import type { CacheEntry } from "../../src/cache/cacheEntry.ts";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const entryOf = (body: Uint8Array): CacheEntry => ({ body, isFinal: true, storedAtMs: 0 });
const createTested = (maxBytes: number) => {
  const telemetry = createTelemetry({ level: "silent" });
  return { telemetry, memory: new MemoryStore(maxBytes, telemetry) };
};

test("the least recently used entry is evicted first, and counted", async () => {
  const { memory, telemetry } = createTested(24_576);
  const body = new Uint8Array(1_500);
  for (let key = 0; key < 9; key++) {
    memory.set(`key${key}`, entryOf(body));
  }
  assert.equal(memory.entries, 9);
  memory.get("key0");
  memory.set("key9", entryOf(body));
  assert.notEqual(memory.get("key0"), undefined);
  assert.equal(memory.get("key1"), undefined);
  assert.equal((await telemetry.metrics.cacheEvictions.get()).values[0]?.value, 1);
  assert.equal((await telemetry.metrics.cacheBytes.get()).values[0]?.value, memory.bytes);
});

test("the size of an entry includes its key, its body and the overhead", () => {
  const { memory } = createTested(1 << 20);
  memory.set("k".repeat(100), entryOf(new Uint8Array(2_000)));
  assert.equal(memory.bytes, 100 + 2_000 + 1_024);
});

test("a small part of a large buffer is copied", () => {
  const { memory } = createTested(1 << 20);
  const slab = new Uint8Array(100_000).fill(7);
  memory.set("small", entryOf(slab.subarray(10, 20)));
  const entry = memory.get("small");
  assert.equal(entry?.body.buffer.byteLength, 10);
  assert.deepEqual(entry.body, new Uint8Array(10).fill(7));
  const pooled = Buffer.from("pooled");
  memory.set("pooled", entryOf(pooled));
  assert.equal(memory.get("pooled")?.body.buffer.byteLength, 6);
});

test("a body in a slightly larger envelope is not copied", () => {
  const { memory } = createTested(1 << 20);
  const envelope = new Uint8Array(2_040);
  memory.set("large", entryOf(envelope.subarray(39, 2_039)));
  assert.equal(memory.get("large")?.body.buffer, envelope.buffer);
});

test("an entry above an eighth of the cache is not stored", () => {
  const { memory } = createTested(80_000);
  assert.equal(memory.set("large", entryOf(new Uint8Array(10_000))), false);
  assert.equal(memory.get("large"), undefined);
  assert.equal(memory.set("small", entryOf(new Uint8Array(8_000))), true);
});

test("a cache of zero bytes stores no entry", () => {
  const { memory } = createTested(0);
  assert.equal(memory.set("key", entryOf(new Uint8Array(1))), false);
  assert.equal(memory.get("key"), undefined);
});

test("a new value replaces the old one", () => {
  const { memory } = createTested(1 << 20);
  memory.set("key", entryOf(Uint8Array.of(1)));
  memory.set("key", entryOf(Uint8Array.of(2)));
  assert.deepEqual(memory.get("key")?.body, Uint8Array.of(2));
  assert.equal(memory.entries, 1);
});

test("a deleted entry is gone", () => {
  const { memory } = createTested(24_576);
  memory.set("key", entryOf(new Uint8Array(1)));
  memory.delete("key");
  assert.deepEqual([memory.get("key"), memory.entries, memory.bytes], [undefined, 0, 0]);
});
