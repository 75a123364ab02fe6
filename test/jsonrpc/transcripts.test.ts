import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { paramsTextOf, type Reply } from "../../src/jsonrpc/call.ts";
import { createDispatch } from "../../src/jsonrpc/dispatch.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { readChunks } from "../support/clients/readChunks.ts";

const folder = new URL("../transcripts/jsonrpc/", import.meta.url);

const dispatch = createDispatch<undefined, Reply>({
  lookup: () => undefined,
  /** `fail` fails; anything else is answered with its own params, as their text came. */
  forward: async (call) => {
    const { method } = call;
    if (method === "fail") {
      throw new RpcError(-32000, "failed");
    }
    return { body: paramsTextOf(call) };
  },
  maxBatch: 100,
  maxResponseBytes: 1_000_000,
  onError: (error) => assert.fail(String(error)),
});

/** `//` says why, `>>` is a request, the `<<` after it its exact response (empty: none). */
for (const file of readdirSync(folder).filter((name) => name.endsWith(".io"))) {
  test(`transcript ${file}`, async () => {
    const lines = readFileSync(new URL(file, folder), "utf8").split("\n");
    const requests = lines.filter((line) => line.startsWith(">>")).map((line) => line.slice(3));
    const responses = lines.filter((line) => line.startsWith("<<")).map((line) => line.slice(3));
    assert.ok(requests.length > 0);
    assert.equal(requests.length, responses.length);
    for (const [index, request] of requests.entries()) {
      const { chunks } = await dispatch(Buffer.from(request), undefined);
      assert.equal(await readChunks(chunks), responses[index], request);
    }
  });
}
