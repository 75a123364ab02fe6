import assert from "node:assert/strict";
import { test } from "node:test";
import { logsOfReceipts } from "../../src/logs/receiptLogs.ts";

const hash = `0x${"ab".repeat(32)}`;
const logOf = (address: string, logIndex: number) =>
  `{"address":"0x${address.repeat(20)}","topics":["${hash}"],"data":"0x","blockNumber":"0x1","blockHash":"${hash}","logIndex":"0x${logIndex}"}`;
const ANY = { addresses: [], topics: [] };

const textsOf = (receipts: string, filter: Parameters<typeof logsOfReceipts>[1] = ANY) =>
  logsOfReceipts(Buffer.from(receipts), filter)?.map(({ text, start, end }) => text.toString("utf8", start, end));

test("logs of receipts are those that the filter matches, in order", () => {
  const receipts = `[{"logs":[${logOf("aa", 0)}, ${logOf("bb", 1)}]},{"status":"0x1","logs":[]},{"logs":[${logOf("aa", 2)}],"status":"0x1"}]`;
  assert.deepEqual(textsOf(receipts), [logOf("aa", 0), logOf("bb", 1), logOf("aa", 2)]);
  assert.deepEqual(textsOf(receipts, { addresses: [`0x${"aa".repeat(20)}`], topics: [] }), [
    logOf("aa", 0),
    logOf("aa", 2),
  ]);
  assert.deepEqual(textsOf(receipts, { addresses: [], topics: [[], []] }), []);
  assert.deepEqual(textsOf("[]"), []);
});

test("no log is read that the parser of the verified receipts did not read", () => {
  const [right, wrong] = [logOf("aa", 0), logOf("bb", 0)];
  assert.deepEqual(
    textsOf(`[{"logs":[${wrong}],"logs":[${right}]}]`),
    [right],
    "of two equal members, the last counts",
  );
  assert.equal(textsOf(`[{"logs":[${wrong}],"l\\u006fgs":[${right}]}]`), undefined, "an escape is not scanned");
});

test("an unknown member is no address and no topic", () => {
  const filter = { addresses: [`0x${"aa".repeat(20)}` as const], topics: [[hash as `0x${string}`]] };
  for (const member of ["author", "txHash", "address2", "removed_"]) {
    const log = logOf("aa", 0).replace("}", `,"${member}":"0x${"00".repeat(20)}"}`);
    assert.deepEqual(textsOf(`[{"logs":[${log}]}]`, filter), [log], member);
  }
});

test("logs are not read from receipts that say that one is not canonical", () => {
  const removed = logOf("aa", 1).replace("}", ',"removed":true}');
  assert.equal(textsOf(`[{"logs":[${logOf("aa", 0)},${removed}]}]`), undefined);
});
