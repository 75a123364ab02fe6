import assert from "node:assert/strict";
import { test } from "node:test";
import { type Call, createCall, paramsTextOf } from "../../src/jsonrpc/call.ts";
import { ParsedReads } from "../../src/methods/parsedReads.ts";

const callOf = (...params: readonly unknown[]): Call => {
  const call = createCall("a", params);
  return { ...call, paramsText: paramsTextOf(call) };
};

test("a text is parsed twice at most, by each function", () => {
  const reads = new ParsedReads();
  let parses = 0;
  const parse = () => ++parses;
  const other = () => ++parses;
  const get = (param: number, by = parse) => reads.get(callOf(param), by);
  assert.deepEqual([get(1), get(1), get(1), get(2), get(1)], [1, 2, 2, 3, 2]);
  assert.deepEqual([get(1, other), get(1, other), get(1)], [4, 4, 5]);
});

test("errors and long texts are not stored, and old texts are forgotten", () => {
  const reads = new ParsedReads();
  let parses = 0;
  const parse = () => ++parses;
  const get = (...params: readonly unknown[]) => reads.get(callOf(...params), parse);
  assert.throws(() => reads.get(callOf(), () => assert.fail("invalid")));
  assert.equal(get(), 1);
  assert.equal(get(), 2);
  assert.equal(get(), 2);
  const long = "x".repeat(600);
  assert.notEqual(get(long), get(long));
  for (let n = 0; n < 20_000; n++) {
    get(n);
    get(n);
  }
  const before = parses;
  get(19_999);
  assert.equal(parses, before);
  get();
  assert.equal(parses, before + 1);
});

test("a stored text does not change with the buffer of its request", () => {
  const reads = new ParsedReads();
  let parses = 0;
  const parse = () => ++parses;
  const call = callOf(1);
  assert.deepEqual([reads.get(call, parse), reads.get(call, parse)], [1, 2]);
  call.paramsText?.fill(0);
  assert.equal(reads.get(callOf(1), parse), 2);
});
