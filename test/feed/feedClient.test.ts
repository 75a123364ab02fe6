import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { backoffMs, createFeed, idleDeadlineMs } from "../../src/feed/feedClient.ts";
import type { FeedMessage } from "../../src/feed/feedMessage.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { wireMessage } from "../support/builders/flashblocks.ts";
import { until } from "../support/clients/until.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";

const open = async (t: TestContext, count: number) => {
  const fakes = await Promise.all(Array.from({ length: count }, () => createFakeFeed()));
  const connected = Promise.all(fakes.map((fake) => fake.connected()));
  const telemetry = createTelemetry({ level: "silent" });
  const messages: FeedMessage[] = [];
  const waiting = new Map<number, () => void>();
  const feed = createFeed({
    chain: "test",
    urls: fakes.map(({ url }) => url),
    maxMessageBytes: 100_000,
    blockTimeMs: () => 2_000,
    onMessage: (message) => {
      messages.push(message);
      waiting.get(messages.length)?.();
    },
    telemetry,
  });
  t.after(async () => {
    feed.close();
    await Promise.all(fakes.map((fake) => fake.close()));
  });
  await connected;
  const arrived = (count: number) =>
    messages.length >= count ? Promise.resolve() : new Promise<void>((resolve) => waiting.set(count, resolve));
  const connections = async () => (await telemetry.metrics.feedConnected.get()).values[0]?.value;
  return { fakes, messages, arrived, telemetry, connections };
};

test("messages of all feeds arrive, as text, binary and brotli", async (t) => {
  const { fakes, messages, arrived } = await open(t, 2);
  fakes[0]?.send(wireMessage(0));
  await arrived(1);
  fakes[1]?.send(Buffer.from(` ${JSON.stringify(wireMessage(1))}`));
  await arrived(2);
  fakes[0]?.send(brotliCompressSync(JSON.stringify(wireMessage(2))));
  await arrived(3);
  assert.deepEqual(
    messages.map(({ index, connection }) => [index, connection]),
    [
      [0, 0],
      [1, 1],
      [2, 0],
    ],
  );
});

test("X Layer's feed: messages and ends of blocks behind a record separator", async (t) => {
  const { fakes, messages, arrived, telemetry } = await open(t, 1);
  const frame = (value: unknown) => Buffer.concat([Uint8Array.of(0x1e), brotliCompressSync(JSON.stringify(value))]);
  const send = (value: unknown) => fakes[0]?.send(frame(value));
  send({ OpFlashblockPayload: { ...wireMessage(0), target_index: 0 } });
  send({ ...wireMessage(1), target_index: 4 });
  send({ OpFlashblockPayloadEnd: { payload_id: wireMessage(0).payload_id } });
  send({ OpFlashblockPayload: { ...wireMessage(0, { number: 102n }), target_index: 0 } });
  await arrived(3);
  assert.deepEqual(
    messages.map(({ blockKey, index }) => [blockKey, index]),
    [
      ["0x0000000000000065", 0],
      ["0x0000000000000065", 1],
      ["0x0000000000000066", 0],
    ],
  );
  const { values } = await telemetry.metrics.feedMessages.get();
  assert.deepEqual(Object.fromEntries(values.map(({ labels, value }) => [labels.decision, value])), { payloadEnd: 1 });
});

test("garbage is counted and ends nothing", async (t) => {
  const { fakes, arrived, telemetry, connections } = await open(t, 1);
  const [fake] = fakes;
  for (const frame of ["{", "[]", "{}", "garbage", Uint8Array.of(1, 2, 3), { ...wireMessage(0), base: null }]) {
    fake?.send(frame);
  }
  fake?.send(wireMessage(0));
  await arrived(1);
  const { values } = await telemetry.metrics.feedMessages.get();
  const counted = Object.fromEntries(values.map(({ labels, value }) => [labels.decision, value]));
  assert.deepEqual(counted, { malformed: 6 });
  assert.equal(await connections(), 1);
});

test("a lost feed reconnects", async (t) => {
  const { fakes, arrived, telemetry, connections } = await open(t, 1);
  const [fake] = fakes;
  fake?.send(wireMessage(0));
  await arrived(1);
  const again = fake?.connected();
  fake?.disconnect();
  await again;
  fake?.send(wireMessage(1));
  await arrived(2);
  assert.equal(await connections(), 1);
  const { values } = await telemetry.metrics.feedReconnects.get();
  assert.equal(values[0]?.value, 1);
});

test("after any number of failed attempts, the next one follows within half a second", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { fakes, telemetry, connections } = await open(t, 1);
  const [fake] = fakes;
  assert.ok(fake);
  const attempts = async () => (await telemetry.metrics.feedReconnects.get()).values[0]?.value ?? 0;
  await fake.close();
  for (let count = 1; count <= 5; count++) {
    await until(async () => (await attempts()) === count, `${count} attempts have failed`);
    assert.equal(await connections(), 0);
    if (count === 5) {
      await fake.open();
    }
    t.mock.timers.tick(500);
  }
  await until(() => fake.connections === 2, "the feed is connected again");
});

test("the backoff doubles up to a limit with random jitter, and is longer for a server that rejects", () => {
  assert.deepEqual(
    [0, 1, 2, 20].map((failures) => backoffMs(failures, "closed", 1)),
    [250, 500, 500, 500],
  );
  assert.deepEqual(
    [0, 1, 2, 20].map((failures) => backoffMs(failures, "refused", 1)),
    [250, 500, 1_000, 10_000],
  );
  assert.equal(backoffMs(0, "closed", 0), 125);
});

test("the idle deadline is three block times and at least two seconds", () => {
  assert.equal(idleDeadlineMs(2_000), 6_000);
  assert.equal(idleDeadlineMs(200), 2_000);
});
