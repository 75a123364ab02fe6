import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { maxPieces } from "../../src/limits/pieces.ts";
import { NodeSubscription } from "../../src/nodes/nodeSubscription.ts";
import { sendInFrames } from "../support/clients/sendInFrames.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";

const PING_MS = 10_000;
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

test("an event of a node in frames of one byte is read, and more frames than it can need end the connection", async (t) => {
  const node = await createFakeFeed();
  t.after(() => node.close());
  const ending = new AbortController();
  t.after(() => ending.abort());
  const connected = node.connected();
  const results: unknown[] = [];
  const closed = new Promise<string | undefined>((resolve) => {
    new NodeSubscription({
      url: node.url,
      headers: {},
      params: ["newHeads"],
      signal: ending.signal,
      onResult: (result) => results.push(result),
      onClosed: resolve,
    });
  });
  const socket = await connected;
  sendInFrames(socket, JSON.stringify({ params: { result: "x".repeat(900) } }));
  sendInFrames(socket, "x".repeat(maxPieces(MAX_MESSAGE_BYTES) + 1));
  assert.notEqual(await closed, undefined);
  assert.deepEqual(results, ["x".repeat(900)]);
});

test("a node that answers no ping is connected to again", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const node = await createFakeFeed({ autoPong: false });
  t.after(() => node.close());
  const ending = new AbortController();
  t.after(() => ending.abort());
  const connected = node.connected();
  const { signal } = ending;
  new NodeSubscription({ url: node.url, headers: {}, params: ["newHeads"], signal, onResult: () => undefined });
  const socket = await connected;
  await once(socket, "message");
  const pinged = once(socket, "ping");
  t.mock.timers.tick(PING_MS);
  await pinged;
  const again = node.connected();
  t.mock.timers.tick(PING_MS);
  await again;
});
