import assert from "node:assert/strict";
import { test } from "node:test";
import { createCall } from "../../src/jsonrpc/call.ts";
import { type ParsedRead, ParsedReads } from "../../src/methods/blockParams.ts";

const parsed = (text: string): ParsedRead => ({ values: [], parameter: { tag: "latest" }, canonicalParams: text });

test("a text is parsed twice at most, for each method", () => {
  const reads = new ParsedReads();
  let parses = 0;
  const parse = () => parsed(`${++parses}`);
  const get = (method: string, ...params: readonly unknown[]) =>
    reads.get(createCall(method, params), parse).canonicalParams;
  assert.deepEqual([get("a", 1), get("a", 1), get("b", 1), get("a", 2), get("a", 1)], ["1", "2", "3", "4", "2"]);
});

test("errors and long texts are not stored, and old texts are forgotten", () => {
  const reads = new ParsedReads();
  let parses = 0;
  const parse = () => parsed(`${++parses}`);
  assert.throws(() => reads.get(createCall("a", []), () => assert.fail("invalid")));
  assert.equal(reads.get(createCall("a", []), parse).canonicalParams, "1");
  const long = createCall("a", ["x".repeat(600)]);
  assert.notEqual(reads.get(long, parse).canonicalParams, reads.get(long, parse).canonicalParams);
  for (let n = 0; n < 3_000; n++) {
    reads.get(createCall("a", [n]), parse);
    reads.get(createCall("a", [n]), parse);
  }
  const before = parses;
  reads.get(createCall("a", [2_999]), parse);
  assert.equal(parses, before);
  reads.get(createCall("a", []), parse);
  assert.equal(parses, before + 1);
});
