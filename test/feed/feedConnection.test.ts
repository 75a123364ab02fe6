import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { connectFeed, type FeedConnectionOptions } from "../../src/feed/feedConnection.ts";
import { sendInFrames } from "../support/clients/sendInFrames.ts";
import { createFakeFeed, type FakeFeed, type FakeFeedOptions } from "../support/fakes/fakeFeed.ts";

const start = async (t: TestContext, options: FakeFeedOptions = {}): Promise<FakeFeed> => {
  const feed = await createFakeFeed(options);
  t.after(() => feed.close());
  return feed;
};

/** Connects, and resolves with the reason of the end. */
const ending = (t: TestContext, feed: Pick<FakeFeed, "url">, options: Partial<FeedConnectionOptions> = {}) => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const stop = connectFeed({
    url: feed.url,
    maxFrameBytes: 1_000,
    pingMs: 5,
    pongDeadlineMs: 60_000,
    idleMs: () => 60_000,
    onOpen: () => {},
    onFrame: () => true,
    onEnd: resolve,
    ...options,
  });
  t.after(stop);
  return { promise, stop };
};

test("a connection that answers pings without data ends as idle", async (t) => {
  const feed = await start(t);
  assert.equal(await ending(t, feed, { idleMs: () => 20 }).promise, "idle");
});

test("frames without a message do not count as data", async (t) => {
  const feed = await start(t);
  const connected = feed.connected();
  const sending = setInterval(() => feed.send("garbage"), 2);
  t.after(() => clearInterval(sending));
  const { promise } = ending(t, feed, { idleMs: () => 50, onFrame: () => false });
  await connected;
  assert.equal(await promise, "idle");
});

test("an open connection without pongs ends as silent", async (t) => {
  const feed = await start(t, { autoPong: false });
  assert.equal(await ending(t, feed, { pongDeadlineMs: 10 }).promise, "silent");
});

test("a closed connection, a rejected connection and a frame above the limit end the feed connection", async (t) => {
  const feed = await start(t);
  const connected = feed.connected();
  const closed = ending(t, feed);
  await connected;
  feed.disconnect();
  assert.equal(await closed.promise, "closed");

  const again = feed.connected();
  const tooLarge = ending(t, feed);
  await again;
  feed.send("x".repeat(1_001));
  assert.equal(await tooLarge.promise, "closed");

  assert.equal(await ending(t, { ...feed, url: "ws://127.0.0.1:1" }).promise, "closed");
});

test("an HTTP rejection ends as refused, and a gateway error as closed", async (t) => {
  let status = 429;
  const server = createServer((_request, response) => response.writeHead(status).end()).listen(0, "127.0.0.1");
  server.on("upgrade", (_request, socket) => socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`));
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address && typeof address === "object");
  const feed = { url: `ws://127.0.0.1:${address.port}` };
  assert.equal(await ending(t, feed).promise, "refused");
  status = 502;
  assert.equal(await ending(t, feed).promise, "closed");
});

test("a message in frames of one byte is read, and more frames than it can need end the connection", async (t) => {
  const feed = await start(t);
  const connected = feed.connected();
  const frames: string[] = [];
  const onFrame = (bytes: Uint8Array): boolean => frames.push(String(bytes)) > 0;
  const connection = ending(t, feed, { onFrame, maxFrameBytes: 6_000 });
  const socket = await connected;
  const message = `{"a":"${"x".repeat(900)}"}`;
  sendInFrames(socket, message);
  sendInFrames(socket, "x".repeat(5_900));
  assert.equal(await connection.promise, "closed");
  assert.deepEqual(frames, [message]);
});
