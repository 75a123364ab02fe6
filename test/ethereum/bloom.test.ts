import assert from "node:assert/strict";
import { test } from "node:test";
import { Bloom } from "@ethereumjs/vm";
import { addToBloom, bloomAdmits, bloomContains, bloomOfLogs, createBloom, orBloom } from "../../src/ethereum/bloom.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { parseData } from "../../src/ethereum/hex.ts";
import type { LogFilter } from "../../src/ethereum/logFilter.ts";

const address = (digit: string): Address => `0x${digit.repeat(40)}`;
const topic = (digit: string): Hash => `0x${digit.repeat(64)}`;
const log = { address: address("a"), topics: [topic("1"), topic("2")] };

test("bits are those of the library", () => {
  const theirs = new Bloom();
  for (const value of [log.address, ...log.topics]) {
    theirs.add(parseData(value));
  }
  assert.deepEqual(bloomOfLogs([log]), theirs.bitvector);
});

test("added values are contained, also after a union", () => {
  const bloom = createBloom();
  addToBloom(bloom, address("b"));
  assert.ok(bloomContains(bloom, address("b")));
  assert.ok(!bloomContains(bloom, address("a")));
  orBloom(bloom, bloomOfLogs([log]));
  assert.ok(bloomContains(bloom, topic("2")) && bloomContains(bloom, address("b")));
});

const CASES: readonly [string, LogFilter, boolean][] = [
  ["nothing asked", { addresses: [], topics: [] }, true],
  ["the address", { addresses: [address("a")], topics: [] }, true],
  ["one of the addresses", { addresses: [address("c"), address("a")], topics: [] }, true],
  ["another address", { addresses: [address("c")], topics: [] }, false],
  ["any topic, then one that is there", { addresses: [], topics: [[], [topic("2")]] }, true],
  ["a topic that is not there", { addresses: [], topics: [[topic("1")], [topic("3")]] }, false],
  ["one of two topics", { addresses: [], topics: [[topic("3"), topic("1")]] }, true],
];

for (const [name, filter, expected] of CASES) {
  test(`${name}: ${expected ? "admitted" : "refused"}`, () => {
    assert.equal(bloomAdmits(bloomOfLogs([log]), filter), expected);
  });
}
