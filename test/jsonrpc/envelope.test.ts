import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { paramsTextOf } from "../../src/jsonrpc/call.ts";
import { type Item, parseEnvelope } from "../../src/jsonrpc/envelope.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";

const parse = (text: string | Uint8Array, maxBatch = 10) => parseEnvelope(Buffer.from(text), maxBatch);

const show = (item: Item | undefined): unknown => {
  if (item === undefined) {
    return undefined;
  }
  const id = item.id === undefined ? undefined : Buffer.from(item.id).toString();
  return "error" in item
    ? [id, item.error.code]
    : [id, item.call.method, Buffer.from(paramsTextOf(item.call)).toString()];
};
const first = (text: string | Uint8Array): unknown => show(parse(text).items[0]);

/** Returns the error code of a body that is rejected as a whole. */
const rejectionOf = (text: string | Uint8Array, maxBatch?: number): number | undefined => {
  try {
    parse(text, maxBatch);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof RpcError);
    return error.code;
  }
};

const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

test("ids are parsed as bytes", () => {
  for (const id of [
    "0",
    "-0",
    "1.50",
    "1e400",
    "123456789012345678901234567890",
    '"\\u0041\\ud800\\""',
    '"é"',
    "null",
  ]) {
    assert.deepEqual(first(`{"jsonrpc":"2.0","id": ${id} ,"method":"m"}`), [id, "m", "[]"]);
  }
  for (const id of ["true", "false", "[]", "{}", "[1]"]) {
    assert.deepEqual(first(`{"jsonrpc":"2.0","id":${id},"method":"m"}`), ["null", -32600]);
  }
});

test("the last of duplicate keys is used, with escapes or without, and unknown keys are ignored", () => {
  assert.deepEqual(
    first('{"id":1,"method":"a","jsonrpc":"1.0","x":{"id":5},"\\u0069d":2,"jsonrpc":"2.0","m\\u0065thod":"\\u0062"}'),
    ["2", "b", "[]"],
  );
});

test("params are an array, absent or null", () => {
  const withParams = (params: string): unknown => first(`{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`);
  assert.deepEqual(withParams('[ 1, {"a":[]} ]'), ["1", "m", '[ 1, {"a":[]} ]']);
  assert.deepEqual(withParams("null"), ["1", "m", "[]"]);
  assert.deepEqual(withParams("{}"), ["1", -32602]);
  assert.deepEqual(withParams('"a"'), ["1", -32600]);
  assert.deepEqual(withParams("1"), ["1", -32600]);
});

test("256 levels are parsed, and one more is rejected", () => {
  const request = (levels: number): string => `{"jsonrpc":"2.0","id":1,"method":"m","params":${nested(levels)}}`;
  assert.deepEqual(first(request(255)), ["1", "m", nested(255)]);
  assert.equal(rejectionOf(request(256)), -32600);
  assert.equal(rejectionOf(nested(100_000)), -32600);
});

test("white space before a batch is allowed, and a byte order mark is not", () => {
  assert.equal(parse(' \n\t\r[{"jsonrpc":"2.0","id":1,"method":"m"} , 1 ]\n').items.length, 2);
  assert.equal(rejectionOf('\uFEFF{"jsonrpc":"2.0","id":1,"method":"m"}'), -32700);
  assert.equal(rejectionOf("\u00a0{}"), -32700);
});

test("invalid bodies are rejected as a whole", () => {
  assert.equal(rejectionOf("[]"), -32600);
  assert.equal(rejectionOf("[1,1,1]", 2), -32600);
  assert.equal(rejectionOf(""), -32700);
  assert.equal(rejectionOf(Buffer.from([0x22, 0xff, 0x22])), -32700);
  assert.equal(rejectionOf(Buffer.from([0x22, 0xc0, 0x80, 0x22])), -32700);
  assert.equal(rejectionOf(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), -32700);
});

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test("the parser accepts exactly what JSON.parse accepts", () => {
  const noise = fc.string({ unit: fc.constantFrom(...'{}[],:"\\u0019-+.eE truefalsn\n\u0001/b'), maxLength: 12 });
  // fast-check's own unit of all characters takes a second to create.
  const character = fc
    .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0x10ffff }))
    .map((code) => String.fromCodePoint(code));
  const cut = fc
    .tuple(fc.json({ stringUnit: character, maxDepth: 4 }), fc.nat(), fc.nat({ max: 2 }), noise)
    .map(([json, at, length, text]) => {
      const start = at % (json.length + 1);
      return json.slice(0, start) + text.slice(0, 2) + json.slice(start + length);
    });
  fc.assert(
    fc.property(fc.oneof(noise, cut), (text) => {
      const wrapped = `{"jsonrpc":"2.0","id":1,"method":"m","params":[${text.toWellFormed()}]}`;
      assert.equal(rejectionOf(wrapped) !== -32700, isJson(wrapped), wrapped);
    }),
    { numRuns: 2_000 },
  );
});

test("parsed params equal the written params", () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.string(), (params, method) => {
      const [item] = parse(JSON.stringify({ method: method.toWellFormed(), params, id: 1, jsonrpc: "2.0" })).items;
      assert.ok(item !== undefined && "call" in item);
      assert.equal(item.call.method, method.toWellFormed());
      assert.deepEqual(item.call.params, JSON.parse(JSON.stringify(params)));
    }),
  );
});
