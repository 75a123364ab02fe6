import assert from "node:assert/strict";
import { test } from "node:test";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { createTestEndpoint, startHttpServer } from "../support/servers/httpServer.ts";

const statusOf = async (url: string, method = "GET"): Promise<number> => (await fetch(url, { method })).status;

test("the health path follows readiness and draining, and needs no key", async (t) => {
  let isReady = false;
  const { url, startDraining, close } = await startHttpServer(createTestEndpoint({ methods: {} }), {
    healthPath: "/healthz",
    isReady: () => isReady,
    authenticate: () => {
      throw new RpcError(-32001, "an API key is needed", { status: 401 });
    },
  });
  t.after(() => close(0));
  assert.equal(await statusOf(`${url}/healthz`), 503);
  isReady = true;
  assert.equal(await statusOf(`${url}/healthz`), 200);
  assert.equal(await statusOf(`${url}/healthz?from=balancer`, "HEAD"), 200);
  assert.equal(await statusOf(`${url}/healthz`, "POST"), 401);
  assert.equal(await statusOf(`${url}/healthz/more`), 401);
  startDraining();
  assert.equal(await statusOf(`${url}/healthz`), 503);
});
