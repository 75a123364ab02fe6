import assert from "node:assert/strict";
import { after, test } from "node:test";
import { request } from "undici";
import { MALFORMED_LIMITS, MALFORMED_REQUESTS } from "../support/builders/malformedRequests.ts";
import { createTestEndpoint, startHttpServer } from "../support/servers/httpServer.ts";

const { maxBodyBytes, maxBatch } = MALFORMED_LIMITS;
const server = await startHttpServer(createTestEndpoint({ methods: {}, maxBatch }), { maxBodyBytes });
after(() => server.close(0));

test("the table has all promised cases", () => {
  assert.ok(MALFORMED_REQUESTS.length >= 60);
});

for (const { name, body, contentType = "application/json", status, answer } of MALFORMED_REQUESTS) {
  test(`malformed: ${name}`, async () => {
    const response = await request(server.url, { method: "POST", headers: { "content-type": contentType }, body });
    assert.deepEqual([response.statusCode, await response.body.text()], [status, answer]);
  });
}

test("no malformed request caused an internal error, and the server still answers", async () => {
  assert.deepEqual(server.errors, []);
  const body = '{"jsonrpc":"2.0","id":1,"method":"m"}';
  const response = await request(server.url, { method: "POST", headers: { "content-type": "application/json" }, body });
  assert.equal(await response.body.text(), '{"jsonrpc":"2.0","id":1,"result":"forwarded m"}');
});
