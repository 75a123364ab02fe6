import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalLogFilter, formatLogFilter, matchesLog, parseLogQuery } from "../../src/ethereum/logFilter.ts";

const A = `0x${"aA".repeat(20)}` as const;
const B = `0x${"0b".repeat(20)}` as const;
const T = `0x${"Cc".repeat(32)}` as const;
const U = `0x${"0d".repeat(32)}` as const;
const a = A.toLowerCase();
const t = T.toLowerCase();

const LIMITS = { maxAddresses: 3, maxTopics: 2 };
const parse = (value: unknown) => parseLogQuery(value, LIMITS);
const canonical = (value: unknown) => canonicalLogFilter(parse(value).filter);

test("equal filters have equal texts", () => {
  assert.equal(canonical({ address: A }), canonical({ address: [a, A] }));
  assert.equal(canonical({ address: [A, B] }), canonical({ address: [B, a, B] }));
  assert.equal(canonical({ topics: [T, null, []] }), canonical({ topics: [[t], [], null] }));
  assert.equal(canonical({ topics: [[T, U]] }), canonical({ topics: [[U, T]] }));
  assert.equal(canonical({ topics: [[T, null]] }), canonical({ topics: [null] }));
  assert.equal(canonical({ topics: [] }), canonical({ address: [], topics: null }));
  assert.notEqual(canonical({ topics: [null] }), canonical({}));
  assert.notEqual(canonical({ topics: [T, null] }), canonical({ topics: [T] }));
  assert.notEqual(canonical({ topics: [null, T] }), canonical({ topics: [T] }));
  assert.notEqual(canonical({ address: A }), canonical({ address: [A, B] }));
});

test("bounds are numbers, tags, or left to their defaults; blockHash takes precedence", () => {
  assert.deepEqual(parse({}).blocks, { fromBlock: undefined, toBlock: undefined });
  assert.deepEqual(parse({ fromBlock: "0x0010", toBlock: "pending" }).blocks, { fromBlock: 16n, toBlock: "pending" });
  assert.deepEqual(parse({ fromBlock: null, toBlock: "earliest" }).blocks, {
    fromBlock: undefined,
    toBlock: "earliest",
  });
  assert.deepEqual(parse({ blockHash: T, fromBlock: "nonsense" }).blocks, { blockHash: t });
});

test("unsafe is latest, and the prefix may be 0X", () => {
  assert.deepEqual(parse({ fromBlock: "unsafe", toBlock: "0X10" }).blocks, { fromBlock: "latest", toBlock: 16n });
  assert.deepEqual(parse({ blockHash: T.replace("0x", "0X") }).blocks, { blockHash: t });
  assert.equal(
    canonical({ address: A.replace("0x", "0X"), topics: [T.replace("0x", "0X")] }),
    canonical({ address: a, topics: [t] }),
  );
});

test("an error names the parameter", () => {
  const refused: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /^filter:/],
    [[], /^filter:/],
    ["0x", /^filter:/],
    [{ fromBlock: 5 }, /^fromBlock:/],
    [{ fromBlock: "0x" }, /^fromBlock:/],
    [{ toBlock: "newest" }, /^toBlock:/],
    [{ toBlock: `0x1${"0".repeat(16)}` }, /^toBlock:/],
    [{ address: "0x12" }, /^address:/],
    [{ address: [A, null] }, /^address:/],
    [{ address: [A, A, A, A] }, /^address: more than 3/],
    [{ topics: T }, /^topics:/],
    [{ topics: [null, A] }, /^topics\[1\]:/],
    [{ topics: [[T, U, T]] }, /^topics\[0\]: more than 2/],
    [{ topics: [null, null, null, null, null] }, /^topics: more than 4/],
    [{ blockHash: A }, /^blockHash:/],
  ];
  for (const [value, message] of refused) {
    assert.throws(() => parse(value), { name: "InvalidValueError", message });
  }
});

test("the filter for nodes has a form that every node accepts", () => {
  const { filter } = parse({ address: [A], topics: [null, [T, U]] });
  assert.deepEqual(formatLogFilter(filter, { from: 1n, to: 255n }), {
    fromBlock: "0x1",
    toBlock: "0xff",
    address: a,
    topics: [null, [U, t]],
  });
  assert.deepEqual(formatLogFilter(parse({}).filter, { blockHash: U }), { blockHash: U });
  const counted = parse({ topics: [T, null, []] }).filter;
  assert.deepEqual(formatLogFilter(counted, { blockHash: U }), { blockHash: U, topics: [t, null, null] });
});

test("a log matches by address and by position", () => {
  const { filter } = parse({ address: [A, B], topics: [null, [T]] });
  assert.equal(matchesLog(filter, { address: B, topics: [U, t] }), true);
  assert.equal(matchesLog(filter, { address: B, topics: [t] }), false);
  assert.equal(matchesLog(filter, { address: U, topics: [U, t] }), false);
  assert.equal(matchesLog(parse({ topics: [] }).filter, { address: B, topics: [] }), true);
});

test("a log with fewer topics than the filter has positions does not match", () => {
  for (const [positions, topics] of [
    [[null], 1],
    [[T, null], 2],
    [[[], null, []], 3],
    [[[T, null], null, null, null], 4],
  ] as const) {
    const { filter } = parse({ topics: positions });
    const log = (count: number) => ({ address: B, topics: [t, U, U, U].slice(0, count) });
    for (let count = 0; count <= 4; count++) {
      assert.equal(matchesLog(filter, log(count)), count >= topics, `${JSON.stringify(positions)}, ${count} topics`);
    }
  }
});
