import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { checkFacilitator } from "../../src/cli/check.ts";
import { formatCheckResult } from "../../src/cli/checkResult.ts";
import { freePort, listen } from "../support/servers/ports.ts";

/** Starts a facilitator that answers /supported. Returns what the check prints about it, with ports replaced. */
const check = async (t: TestContext, status: number, kinds: readonly object[]): Promise<string> => {
  const server = createServer((request, response) => {
    const isKnown = request.url === "/k3y/supported" && request.headers["x-key"] === "s3cret";
    response
      .writeHead(isKnown ? status : 404, { "content-type": "application/json" })
      .end(JSON.stringify({ kinds, extensions: [], signers: {} }));
  });
  const port = await listen(server);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return print(`http://127.0.0.1:${port}/k3y`);
};

const print = async (url: string): Promise<string> => {
  const facilitator = { url, headers: { "x-key": "s3cret" }, timeoutMs: 1, settleTimeoutMs: 1, maxConcurrent: 1 };
  const result = await checkFacilitator({ network: "eip155:8453", facilitator });
  return formatCheckResult(result).replace(/127\.0\.0\.1:\d+/, "HOST");
};

const exact = (network: string) => ({ x402Version: 2, scheme: "exact", network });

test("the facilitator is asked whether it settles on the network", async (t) => {
  assert.equal(
    await check(t, 200, [exact("eip155:8453")]),
    "ok    facilitator: HOST: settles x402 version 2, scheme exact, on eip155:8453",
  );
  assert.equal(
    await check(t, 200, [exact("eip155:84532"), { ...exact("eip155:8453"), x402Version: 1 }]),
    "fault facilitator: HOST: does not settle x402 version 2, scheme exact, on eip155:8453",
  );
});

test("a facilitator that refuses or does not listen is a fault, without its URL", async (t) => {
  assert.equal(await check(t, 401, []), "fault facilitator: HOST: HTTP status 401");
  assert.equal(
    await print(`http://127.0.0.1:${await freePort()}/k3y`),
    "fault facilitator: HOST: ECONNREFUSED (nothing listens on this host and port)",
  );
});
