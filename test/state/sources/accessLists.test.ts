import assert from "node:assert/strict";
import { test } from "node:test";
import { parseData } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import { hashBlockAccessList, parseBlockAccessList } from "../../../src/verification/blockAccessList.ts";
import { compareTruth } from "../../support/state/stateTruth.ts";
import {
  accessListJob,
  encodeJson,
  formatAccessList,
  readRecorded,
  recordedNames,
  writesOfJob,
} from "./recordedBlocks.ts";

const names = recordedNames().filter((name) => name.endsWith("Amsterdam"));

test("the hash of geth's access lists is the header's", () => {
  assert.ok(names.length >= 7);
  for (const name of names) {
    const { block, accessList = "0x" } = readRecorded(name);
    assert.equal(keccak256Hex(parseData(accessList as `0x${string}`)), block.blockAccessListHash, name);
    assert.equal(
      hashBlockAccessList(parseBlockAccessList(formatAccessList(accessList))),
      block.blockAccessListHash,
      name,
    );
  }
});

for (const name of names) {
  const recorded = readRecorded(name);
  test(`an access list has every write of its block, and no unknown value: ${name}`, () => {
    const { wrong, missed, unknown } = compareTruth(
      writesOfJob(accessListJob(recorded)),
      recorded.before,
      recorded.after,
    );
    assert.deepEqual({ wrong, missed, unknown }, { wrong: [], missed: [], unknown: 0 }, recorded.what);
  });
}

test("an access list that differs from the header in one value is rejected", () => {
  const recorded = readRecorded("withdrawalsGethAmsterdam");
  const list = formatAccessList(recorded.accessList ?? "0x") as Record<string, unknown[]>[];
  const changed = list.map((account) => ({ ...account, nonceChanges: [] }));
  const faulty = {
    withoutAccount: list.slice(1),
    withoutNonces: changed,
    empty: [],
    notThere: null,
    noList: { accounts: list },
  };
  for (const [name, each] of Object.entries(faulty)) {
    const output = runWriteSetJob(accessListJob(recorded, { list: encodeJson(each) }));
    assert.deepEqual(output, { kind: "failed", reason: "mismatch" }, name);
  }
});

test("an access list is rejected if the block's hash does not commit to the header's hash of it", () => {
  const recorded = readRecorded("withdrawalsGethAmsterdam");
  const other = readRecorded("requestsGethAmsterdam");
  const { blockAccessListHash: _, ...without } = recorded.block;
  const headers = {
    without,
    another: other.block,
    anotherWithItsList: other.block,
    mixed: { ...recorded.block, blockAccessListHash: other.block.blockAccessListHash },
  };
  for (const [name, header] of Object.entries(headers)) {
    const list = encodeJson(
      formatAccessList((name === "mixed" || name === "anotherWithItsList" ? other : recorded).accessList ?? "0x"),
    );
    const output = runWriteSetJob(accessListJob(recorded, { header, list }));
    assert.deepEqual(output, { kind: "failed", reason: "mismatch" }, name);
  }
});

test("fields that the list leaves out are empty, and the field names of clients are read too", () => {
  const long = [
    {
      address: `0x${"11".repeat(20)}`,
      storageChanges: [
        {
          slot: "0x1",
          slotChanges: [
            { blockAccessIndex: "0x2", postValue: "0x5" },
            { blockAccessIndex: "0x1", postValue: "0x4" },
          ],
        },
      ],
      balanceChanges: [{ blockAccessIndex: "0x1", postBalance: "0x9" }],
      nonceChanges: [{ blockAccessIndex: "0x1", postNonce: "0x2" }],
      codeChanges: [{ blockAccessIndex: "0x1", newCode: "0x60" }],
    },
  ];
  const short = [
    {
      address: `0x${"11".repeat(20)}`,
      storageChanges: [
        {
          key: `0x${"1".padStart(64, "0")}`,
          changes: [
            { index: 2, value: `0x${"5".padStart(64, "0")}` },
            { index: 1, value: `0x${"4".padStart(64, "0")}` },
          ],
        },
      ],
      storageReads: [],
      balanceChanges: [{ index: 1, value: "0x9" }],
      nonceChanges: [{ index: 1, value: "0x2" }],
      codeChanges: [{ index: 1, code: "0x60" }],
    },
  ];
  assert.deepEqual(parseBlockAccessList(long), parseBlockAccessList(short));
});
