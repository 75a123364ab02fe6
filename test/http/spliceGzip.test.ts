import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { deflateBody } from "../../src/cache/deflateBody.ts";
import { spliceGzip } from "../../src/http/spliceGzip.ts";

test("a compressed body between plain bytes is one valid gzip stream", async () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  await fc.assert(
    fc.asyncProperty(bytes, bytes, bytes, async (before, body, after) => {
      const spliced = gunzipSync(spliceGzip(before, await deflateBody(body), after));
      assert.deepEqual(spliced, Buffer.concat([before, body, after]));
    }),
  );
});

test("a large body, and an id longer than a stored block", async () => {
  const body = Buffer.from(`[${Array(50_000).fill('"0xabcdef"').join(",")}]`);
  const before = Buffer.from(`{"jsonrpc":"2.0","id":"${"x".repeat(200_000)}","result":`);
  const after = Buffer.from("}");
  const spliced = spliceGzip(before, await deflateBody(body), after);
  assert.deepEqual(gunzipSync(spliced), Buffer.concat([before, body, after]));
});
