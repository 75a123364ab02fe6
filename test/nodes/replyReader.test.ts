import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseBatchResponse, parseNodeResponse } from "../../src/nodes/replyReader.ts";
import { readResponseBlock } from "../../src/verification/responseBlock.ts";

const extract = (text: string): string | undefined => {
  const response = parseNodeResponse(Buffer.from(text));
  return response && Buffer.from("result" in response ? response.result : response.error).toString();
};

test("the result is extracted byte for byte from any envelope", () => {
  fc.assert(
    fc.property(
      fc.json(),
      fc.constantFrom("", " ", "\n\t"),
      fc.shuffledSubarray(['"jsonrpc":"2.0"', '"id":1', '"x":{"result":[1,"}"]}', '"error":null'], { minLength: 0 }),
      fc.nat(4),
      (json, space, around, place) => {
        const members = around.toSpliced(place, 0, `"result"${space}:${space}${json}`);
        assert.equal(extract(`${space}{${members.join(`${space},`)}${space}}${space}`), json.trim());
      },
    ),
  );
});

test("a large result is extracted by the envelope's edges, or by a scan if the edges are unusual", () => {
  const strings = ["x".repeat(1_200_000), `\\"}${"é".repeat(600_000)}`];
  const results = [
    ...strings.map((text) => `"${text}"`),
    `[${"1,".repeat(600_000)}2]`,
    `{"a":"${"b".repeat(1_200_000)}"}`,
  ];
  for (const result of results) {
    for (const text of [
      `{"jsonrpc":"2.0","id":1,"result":${result}}\n`,
      `{"id":1, "jsonrpc": "2.0", "result": ${result} }`,
      `{"result":${result},"id":1,"jsonrpc":"2.0"}`,
      `{"result":${result},"other":{"a":1},"id":1}`,
    ]) {
      assert.ok(extract(text) === result, `${text.slice(0, 50)} ... ${text.slice(-50)}`);
    }
  }
});

test("a result that is verified afterwards is cut at the envelope's edges from 8 KiB on", () => {
  const cutVerified = (text: string): string | undefined => {
    const answer = parseNodeResponse(Buffer.from(text), true);
    return answer && "result" in answer ? Buffer.from(answer.result).toString() : undefined;
  };
  const broken = (bytes: number): string => `{"a":"${"b".repeat(bytes)}"},{"c":1}`;
  const envelope = (result: string): string => `{"jsonrpc":"2.0","id":1,"result":${result}}`;
  assert.equal(cutVerified(envelope(broken(10_000))), broken(10_000));
  assert.equal(cutVerified(envelope(broken(1_000))), undefined);
  assert.equal(extract(envelope(broken(10_000))), undefined);
});

test("a trace may have more levels than a request", () => {
  const levels = 1_024;
  const trace = `${'{"calls":['.repeat(levels)}${"]}".repeat(levels)}`;
  assert.equal(extract(`{"jsonrpc":"2.0","id":1,"result":${trace}}`), trace);
});

test("an error object is extracted, and other texts are not responses", () => {
  assert.equal(extract('{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"}"}}'), '{"code":3,"message":"}"}');
  for (const text of [
    "",
    "null",
    "<html>",
    "[]",
    "{}",
    '{"result":',
    '{"result":"a',
    '{"id":1,"result":{"a":1}',
    '{"result"}',
  ]) {
    assert.equal(extract(text), undefined, text);
  }
});

test("the responses of a batch are assigned by id", () => {
  const answers = parseBatchResponse(Buffer.from('[{"id":1,"result":[1]}, {"error":{"code":1},"id":0},7]'));
  assert.deepEqual(
    answers?.map((answer) => answer?.id),
    ["1", "0", undefined],
  );
  assert.equal(parseBatchResponse(Buffer.from('{"id":null,"error":{}}')), undefined);
});

test("the block of a response is read only from its outermost members", () => {
  const hash = `0x${"aB".repeat(32)}`;
  const block = { hash: hash.toLowerCase(), number: 16n };
  const inner = { hash: "0x1", blockHash: "0x1", number: "0x1", blockNumber: "0x1" };
  const tell = (value: unknown, blockField: "hash" | "blockHash" | "firstBlockHash") =>
    readResponseBlock(Buffer.from(JSON.stringify(value)), blockField);
  assert.deepEqual(tell({ transactions: [inner], hash, number: "0x10" }, "hash"), block);
  assert.deepEqual(tell({ logs: [inner], blockNumber: "0x10", blockHash: hash }, "blockHash"), block);
  assert.deepEqual(tell([{ blockNumber: "0x10", blockHash: hash }, inner], "firstBlockHash"), block);
  // trace_block of Parity and compatible nodes.
  assert.deepEqual(tell([{ blockNumber: 16, blockHash: hash }], "firstBlockHash"), block);
  assert.equal(tell(null, "hash"), undefined);
  assert.equal(tell([], "firstBlockHash"), undefined);
  assert.equal(tell({ blockHash: null, blockNumber: null }, "blockHash"), undefined);
});
