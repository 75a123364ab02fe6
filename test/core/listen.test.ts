import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { listen } from "../../src/core/listen.ts";

test("a port is shared on Linux alone", async (t) => {
  const server = createServer();
  const { platform } = process;
  t.after(() => Object.defineProperty(process, "platform", { value: platform }));
  Object.defineProperty(process, "platform", { value: "darwin" });
  await assert.rejects(listen(server, { host: "127.0.0.1", port: 0, reusePort: true, setting: "server.port" }), {
    message: "cannot listen on 127.0.0.1:0: server.reusePort needs Linux",
  });
  assert.equal(server.listening, false);
});
