import assert from "node:assert/strict";
import { test } from "node:test";
import { maxPieces } from "../../src/limits/pieces.ts";
import { NodeSubscription } from "../../src/nodes/nodeSubscription.ts";
import { sendInFrames } from "../support/clients/sendInFrames.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";

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
