import assert from "node:assert/strict";
import { test } from "node:test";
import { table } from "../../src/methods/table.ts";
import { hasResultForm } from "../../src/verification/resultForms.ts";
import { createHeads, hashOf } from "../support/builders/heads.ts";
import { A, a, requestOf } from "./requestOf.ts";

test("method names are unique", () => {
  assert.equal(new Set(table.map(({ name }) => name)).size, table.length);
});

/** forebay answers these itself, or sends them once and returns any result. */
const WITHOUT_FORM = /Filter$|Filter(Changes|Logs)$|^eth_(chainId|(un)?subscribe|sendRaw\w+)$|^net_version$/;

test("the form of the result of each method that reads from a node is known", () => {
  const unknown = table.filter(({ name }) => !WITHOUT_FORM.test(name) && !hasResultForm(name));
  assert.deepEqual(
    unknown.map(({ name }) => name),
    [],
  );
});

test("a state read at latest is sent by number and by hash", async () => {
  const request = await requestOf("eth_getBalance", [A, "latest"]);
  assert.equal(request.retention, "recentState");
  assert.deepEqual(request.params, [a, "0x64"]);
  assert.deepEqual(request.byHash?.params, [a, { blockHash: hashOf(100n) }]);
  assert.deepEqual(request.block, { kind: "recent", number: 100n, hash: hashOf(100n) });
});

test("a read at or below finalized is sent by number, and is final", async () => {
  const request = await requestOf("eth_getBlockByNumber", ["finalized", true]);
  assert.equal(request.retention, "final");
  assert.equal(request.text, '["0x32",true]');
  assert.equal(request.byHash, undefined);
});

test("a read of a recent block is sent by its ByHash method", async () => {
  const request = await requestOf("eth_getBlockByNumber", ["0x60", false]);
  assert.equal(request.retention, "recent");
  assert.equal(request.byHash?.method, "eth_getBlockByHash");
  assert.deepEqual(request.byHash?.params, [hashOf(96n), false]);
});

test("the access list of a recent block is requested by its hash, as the execution API has it", async () => {
  for (const method of ["eth_getBlockAccessList", "debug_getRawBlockAccessList"]) {
    const request = await requestOf(method, ["latest"]);
    assert.equal(request.retention, "recent");
    assert.deepEqual(request.byHash, { method, params: [hashOf(100n)] });
  }
});

test("a number above the head refreshes heads first, and no node is asked about a block above them", async () => {
  await assert.rejects(requestOf("eth_getBalance", [A, "0x65"]), /header not found/);
  const arrived = await requestOf(
    "eth_getBlockByNumber",
    ["0x65", false],
    createHeads({ latest: 101n, finalized: 50n }),
  );
  assert.equal(arrived.retention, "recent");
});

test("state at a hash outside the block ring is never cached, and a block at such a hash is cached by hash", async () => {
  const hash = `0x${"12".repeat(32)}`;
  assert.equal((await requestOf("eth_getBalance", [A, { blockHash: hash }])).retention, "never");
  assert.equal((await requestOf("eth_getBlockReceipts", [hash])).retention, "byHash");
  assert.equal((await requestOf("eth_getBlockByHash", [hash, false])).retention, "byHash");
});

test("requireCanonical is forwarded to the node", async () => {
  const request = await requestOf("eth_getCode", [A, { blockHash: hashOf(90n), requireCanonical: true }]);
  assert.deepEqual(request.byHash?.params, [a, { blockHash: hashOf(90n), requireCanonical: true }]);
});

test("the fee history of a final block is final, and a newer one is cached until the next head", async () => {
  assert.equal((await requestOf("eth_feeHistory", [4, "0x20", [1, 2.5]])).retention, "final");
  const request = await requestOf("eth_feeHistory", ["0x4", "latest"]);
  assert.equal(request.retention, "head");
  assert.equal(request.text, '["0x4","0x64",[]]');
});
