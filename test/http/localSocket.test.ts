import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { createLocalSockets } from "../../src/http/localSocket.ts";

/** More than a stream buffers. */
const LARGE = 1024 * 1024;

test("bytes wait until the other side reads them, and the end follows them", async () => {
  const { client, server } = createLocalSockets();
  let isWritten = false;
  client.write(Buffer.alloc(LARGE), () => {
    isWritten = true;
  });
  await new Promise(setImmediate);
  assert.equal(isWritten, false);
  client.end("second");
  const read = Buffer.concat(await server.toArray());
  assert.equal(read.subarray(LARGE).toString(), "second");
  assert.equal(isWritten, true);
});

test("the end of one side closes the other", async () => {
  for (const [one, other] of [
    ["client", "server"],
    ["server", "client"],
  ] as const) {
    const sockets = createLocalSockets();
    const closed = once(sockets[other], "close");
    sockets[one].destroy();
    await closed;
  }
});

test("a side without traffic emits timeout after the set time", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { server } = createLocalSockets();
  let timeouts = 0;
  server.on("timeout", () => timeouts++);
  server.setTimeout(100);
  t.mock.timers.tick(99);
  assert.equal(timeouts, 0);
  t.mock.timers.tick(1);
  assert.equal(timeouts, 1);
  server.setTimeout(100).setTimeout(0);
  t.mock.timers.tick(1_000);
  assert.equal(timeouts, 1);
});
