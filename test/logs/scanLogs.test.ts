import assert from "node:assert/strict";
import { test } from "node:test";
import { formatList, joinLogs, orderLogs, streamList } from "../../src/logs/mergeLogs.ts";
import { scanLogs } from "../../src/logs/scanLogs.ts";
import { fakeTopic } from "./fakeChain.ts";

const hash = fakeTopic(1);
const log = (block: number, index: number, more: object = {}) => ({
  address: "0x",
  topics: [hash, hash],
  data: `0x${"ab".repeat(100)}`,
  blockNumber: `0x${block.toString(16)}`,
  blockHash: hash,
  logIndex: `0x${index.toString(16)}`,
  ...more,
});
const scan = (value: unknown, space?: number) => scanLogs(Buffer.from(JSON.stringify(value, undefined, space)));

test("block and index of each log are found with any other fields and any white space", () => {
  const unusual = {
    note: 'a "quoted" \\ } ] text',
    nested: { list: [{ blockNumber: "0xff" }] },
    flag: null,
    count: -1.5e3,
  };
  const logs = [log(5, 0, unusual), log(5, 1, { blockTimestamp: "0x1", blockTimestampMs: "0x3e8" }), log(300, 7)];
  for (const space of [undefined, 2]) {
    const scanned = scan(logs, space);
    assert.deepEqual(
      scanned.map(({ block, index, hasTimestamp: timed }) => [block, index, timed]),
      [
        [5, 0, false],
        [5, 1, true],
        [300, 7, false],
      ],
    );
    assert.deepEqual(JSON.parse(Buffer.from(formatList([joinLogs(scanned)])).toString()), logs);
  }
  assert.deepEqual(scan([]), []);
});

test("a cached list is scanned again, with timestamps added and unknown fields unchanged", () => {
  const logs = [log(5, 0), log(5, 1, { blockTimestampMs: "0x3e8" }), log(6, 0, { blockTimestamp: "0x9" })];
  const cached = joinLogs(scan(logs), new Map([[hash, "0x7"]]));
  const again = scanLogs(cached);
  assert.ok(again.every(({ hasTimestamp: timed }) => timed));
  assert.deepEqual(JSON.parse(Buffer.from(formatList([joinLogs(again)])).toString()), [
    log(5, 0, { blockTimestamp: "0x7" }),
    log(5, 1, { blockTimestampMs: "0x3e8", blockTimestamp: "0x7" }),
    log(6, 0, { blockTimestamp: "0x9" }),
  ]);
});

test("a text that is not a list of sealed logs is rejected", () => {
  const good = JSON.stringify([log(5, 0), log(5, 1)]);
  for (const text of [
    "null",
    '"0x"',
    "{}",
    "[1]",
    "[{}]",
    `${good}]`,
    good.slice(0, -1),
    good.slice(0, 80),
    "[,]",
    "",
  ]) {
    if (text === "") {
      assert.deepEqual(scanLogs(Buffer.from(text)), []);
    } else {
      assert.throws(() => scanLogs(Buffer.from(text)), SyntaxError, text);
    }
  }
  assert.throws(() => scan([log(5, 0, { blockNumber: null, blockHash: null })]), SyntaxError);
});

test("logs are sorted without duplicates, and two hashes of one block number are a contradiction", () => {
  const ordered = orderLogs(scan([log(6, 1), log(5, 10), log(5, 2), log(6, 1)]));
  assert.deepEqual(
    ordered?.map(({ block, index }) => [block, index]),
    [
      [5, 2],
      [5, 10],
      [6, 1],
    ],
  );
  assert.equal(orderLogs(scan([log(5, 1), log(5, 2, { blockHash: fakeTopic(2) })])), undefined);
});

test("a list is the same in one buffer and in chunks", async () => {
  const logs = Array.from({ length: 600 }, (_, at) => log(at, 0));
  const scanned = scan(logs);
  const chunks = [[], scanned.slice(0, 1), scanned.slice(1, 300), [], scanned.slice(300)].map((part) => joinLogs(part));
  const streamed: Uint8Array[] = [];
  for await (const chunk of streamList(chunks)) {
    streamed.push(chunk);
  }
  assert.deepEqual(JSON.parse(Buffer.concat(streamed).toString()), logs);
  assert.deepEqual(Buffer.concat(streamed), Buffer.from(formatList(chunks)));
});
