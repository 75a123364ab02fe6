import assert from "node:assert/strict";
import { test } from "node:test";
import { paramsTextOf, type Reply } from "../../src/jsonrpc/call.ts";
import { createDispatch } from "../../src/jsonrpc/dispatch.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { readTranscripts, type TranscriptStep } from "../transcripts/transcript.ts";
import { readChunks } from "./readChunks.ts";

const dispatch = createDispatch<undefined, Reply>({
  lookup: () => undefined,
  /** `fail` fails. Any other method returns the text of its params unchanged. */
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

for (const { name, steps } of readTranscripts("jsonrpc")) {
  test(`transcript ${name}`, async () => {
    let request = "";
    for (const step of steps) {
      if (step.kind === "request") {
        request = step.text;
      } else if (step.kind === "response") {
        const { chunks } = await dispatch(Buffer.from(request), undefined);
        assert.equal(await readChunks(chunks), step.text, request);
      }
    }
    const count = (kind: TranscriptStep["kind"]) => steps.filter((step) => step.kind === kind).length;
    assert.ok(count("request") > 0);
    assert.equal(count("request"), count("response"));
  });
}
