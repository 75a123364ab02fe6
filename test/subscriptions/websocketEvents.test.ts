import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf } from "../support/builders/heads.ts";
import { createPendingBlock } from "../support/builders/pendingBlock.ts";
import { createRig, extension, names, OTHER, rpcLog, transaction } from "./eventRig.ts";

test("logs are read once per head, and a reorganisation removes them newest first before it adds new ones", async () => {
  const rig = createRig();
  const all = await rig.subscribe("logs", {});
  const some = await rig.subscribe("logs", { address: OTHER });
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [
    rpcLog(11n, hashOf(11n), "one", 0),
    rpcLog(11n, hashOf(11n), "two", 1, OTHER),
  ]);
  await rig.head(11n);
  const late = await rig.subscribe("logs", {});
  rig.results.set(`eth_getLogs ${hashOf(11n, 1)}`, [rpcLog(11n, hashOf(11n, 1), "three", 0)]);
  await rig.head(12n, { fork: 1, from: 1 });
  assert.deepEqual(names(all()), ["one", "two", "-two", "-one", "three"]);
  assert.deepEqual(names(some()), ["two", "-two"]);
  // A log that was never sent is not retracted.
  assert.deepEqual(names(late()), ["three"]);
  assert.deepEqual(
    rig.asked,
    [hashOf(11n), hashOf(11n, 1), hashOf(12n, 1)].map((hash) => `eth_getLogs ${hash}`),
  );
  rig.close();
});

test("logs of a failing node are retried, and the order of the blocks is preserved", async () => {
  const rig = createRig();
  const all = await rig.subscribe("logs", {});
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [rpcLog(11n, hashOf(11n), "one", 0)]);
  rig.results.set(`eth_getLogs ${hashOf(12n)}`, [rpcLog(12n, hashOf(12n), "two", 0)]);
  rig.fail(1);
  await rig.head(12n);
  assert.deepEqual(all(), []);
  await rig.sentCount(2);
  assert.deepEqual(names(all()), ["one", "two"]);
  rig.close();
});

test("missed blocks close the connections of subscribers", async () => {
  const rig = createRig();
  await rig.subscribe("newHeads");
  await rig.head(11n);
  assert.deepEqual(rig.closed, []);
  await rig.head(20n, { missed: 5n });
  assert.deepEqual(rig.closed, ["1013 5 blocks were missed"]);
  rig.close();
});

test("pendingLogs removes a log that is not sealed once", async () => {
  const rig = createRig();
  const logs = await rig.subscribe("pendingLogs");
  const block = createPendingBlock(11n, 1, [transaction("one"), transaction("two")]);
  rig.pending.emit({ extended: [extension(block, 0)] });
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [rpcLog(11n, hashOf(11n), "one", 0)]);
  await rig.head(11n);
  assert.deepEqual(names(logs()), ["one", "two", "-two"]);
  // The sealed block is replaced: its remaining logs are retracted too.
  rig.results.set(`eth_getLogs ${hashOf(11n, 1)}`, [rpcLog(11n, hashOf(11n, 1), "three", 0)]);
  await rig.head(11n, { fork: 1, from: 1 });
  assert.deepEqual(names(logs()), ["one", "two", "-two", "-one", "three"]);
  rig.close();
});

test("pendingLogs removes the log of a transaction before it sends it from another place, or with another content", async () => {
  const rig = createRig();
  const logs = await rig.subscribe("pendingLogs");
  const emit = (number: bigint, ...transactions: Parameters<typeof createPendingBlock>[2]) =>
    rig.pending.emit({ extended: [extension(createPendingBlock(number, 1, transactions), 0)] });
  emit(11n, transaction("one"));
  emit(11n, transaction("two"), transaction("one"));
  emit(11n, transaction("two", OTHER));
  emit(12n, transaction("two", OTHER));
  assert.deepEqual(names(logs()), ["one", "-one", "two", "one", "-two", "two", "-two", "two"]);
  // The sealed block has the first, with another content, and not in the place of the feed.
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [rpcLog(11n, hashOf(11n), "one", 1, OTHER)]);
  await rig.head(11n);
  assert.deepEqual(names(logs()).slice(8), ["-one", "one"]);
  rig.close();
});

test("pendingLogs removes the logs of each block of a head change, also after a reorganisation below them", async () => {
  const rig = createRig();
  const logs = await rig.subscribe("pendingLogs");
  rig.pending.emit({
    extended: [
      extension(createPendingBlock(11n, 1, [transaction("one")]), 0),
      extension(createPendingBlock(12n, 1, [transaction("two")]), 0),
      extension(createPendingBlock(13n, 1, [transaction("three")]), 0),
    ],
  });
  await rig.head(9n, { fork: 1, from: 2 });
  assert.deepEqual(names(logs()), ["one", "two", "three"]);
  rig.results.set(`eth_getLogs ${hashOf(11n, 1)}`, []);
  rig.results.set(`eth_getLogs ${hashOf(12n, 1)}`, []);
  await rig.head(12n, { fork: 1 });
  assert.deepEqual(names(logs()).slice(3), ["-one", "-two"]);
  rig.close();
});

test("a pendingLogs subscription that begins inside a block gets the whole block when it is sealed", async () => {
  const rig = createRig();
  const early = await rig.subscribe("pendingLogs");
  const first = createPendingBlock(11n, 1, [transaction("one")]);
  rig.pending.emit({ extended: [extension(first, 0)] });
  const late = await rig.subscribe("pendingLogs");
  const second = createPendingBlock(11n, 2, [transaction("one"), transaction("two")]);
  rig.pending.emit({ extended: [extension(second, 1)] });
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [
    rpcLog(11n, hashOf(11n), "one", 0),
    rpcLog(11n, hashOf(11n), "two", 1),
  ]);
  await rig.head(11n);
  assert.deepEqual(names(early()), ["one", "two"]);
  assert.deepEqual(names(late()), ["two", "one"]);
  rig.close();
});

test("proven events are read by hash, and not taken from the heads, whose headers need not have their hashes", async () => {
  const rig = createRig();
  const heads = await rig.subscribe("newHeads");
  const provenHeads = await rig.subscribeProven("newHeads");
  const provenLogs = await rig.subscribeProven("logs", {});
  rig.results.set(`eth_getBlockByHash ${hashOf(11n)}`, { number: "0xb", size: "0x1", transactions: [] });
  rig.results.set(`eth_getLogs ${hashOf(11n)}`, [rpcLog(11n, hashOf(11n), "one", 0)]);
  // All first reads.
  rig.fail(3);
  await rig.head(11n, { isEmpty: true });
  await rig.sentCount(3);
  assert.deepEqual(heads(), [{ number: "0xb" }]);
  assert.deepEqual(provenHeads(), [{ number: "0xb", size: "0x1" }]);
  assert.deepEqual(names(provenLogs()), ["one"]);
  rig.close();
});
