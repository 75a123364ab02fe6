import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { findHeaderDifference, findUnknownFrom, withUnknownFrom } from "../../src/ethereum/nodeRules.ts";

const forks = fixedForks(1n, "prague");
const headerOf = (timestamp: bigint, fields: object) => ({
  number: 1n,
  timestamp,
  fields: { number: "0x1", ...fields },
});
const strangeHeader = (timestamp: bigint) => headerOf(timestamp, { someNewRoot: "0x00" });

test("an unknown header field limits the rules from the earliest head that has it", () => {
  const first = findHeaderDifference(strangeHeader(200n), forks, undefined);
  assert.deepEqual(first, { from: 200n, what: "header field someNewRoot" });
  assert.equal(findHeaderDifference(strangeHeader(210n), forks, first)?.from, 200n);
  assert.equal(findHeaderDifference(strangeHeader(190n), forks, first)?.from, 190n);
  assert.equal(findHeaderDifference(headerOf(220n, {}), forks, first), undefined);
});

test("the header fields of Amsterdam are known since Amsterdam only", () => {
  const header = headerOf(200n, { blockAccessListHash: `0x${"ab".repeat(32)}`, slotNumber: "0x7" });
  assert.equal(findHeaderDifference(header, fixedForks(1n, "amsterdam"), undefined), undefined);
  assert.deepEqual(findHeaderDifference(header, fixedForks(1n, "bpo2"), undefined), {
    from: 200n,
    what: "header field blockAccessListHash, slotNumber",
  });
});

test("the earliest of all differences and of the forks' own limit counts", () => {
  assert.equal(findUnknownFrom(forks, []), undefined);
  const differences = [
    { from: 30n, what: "a" },
    { from: 20n, what: "b" },
  ];
  assert.equal(findUnknownFrom(forks, differences), 20n);
  assert.equal(findUnknownFrom({ ...forks, unknownFrom: 10n }, differences), 10n);
});

test("the limit can be set and removed", () => {
  assert.equal(withUnknownFrom(forks, 5n).unknownFrom, 5n);
  assert.deepEqual(withUnknownFrom({ ...forks, unknownFrom: 5n }, undefined), withUnknownFrom(forks, undefined));
});
