import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatQuantity, type Hash } from "../../src/ethereum/hex.ts";
import { matchesLog, parseLogQuery } from "../../src/ethereum/logFilter.ts";
import { FilterIndex } from "../../src/subscriptions/filterIndex.ts";

const addressOf = (at: number) => formatQuantity(0xa0 + at).padEnd(42, "0");
const topicOf = (at: number) => formatQuantity(0xb0 + at).padEnd(66, "0") as Hash;
const limits = { maxAddresses: 1_000, maxTopics: 1_000 };
const few = fc.integer({ min: 0, max: 3 });

const filters = fc
  .record({
    address: fc.array(few.map(addressOf), { maxLength: 2 }),
    topics: fc.array(fc.oneof(fc.constant(null), fc.array(few.map(topicOf), { maxLength: 2 })), { maxLength: 4 }),
  })
  .map((filter) => parseLogQuery(filter, limits).filter);
const logs = fc.record({ address: few.map(addressOf), topics: fc.array(few.map(topicOf), { maxLength: 4 }) });

test("the index finds exactly the filters that match, each entry once, also after some have left", () => {
  fc.assert(
    fc.property(
      fc.array(filters, { maxLength: 30 }),
      fc.array(logs, { maxLength: 10 }),
      fc.nat(),
      (list, asked, left) => {
        const index = new FilterIndex<number>();
        for (const [entry, filter] of list.entries()) {
          index.add(filter, entry);
        }
        const isLeft = (entry: number) => entry % 3 === left % 3;
        for (const [entry, filter] of list.entries()) {
          if (isLeft(entry)) {
            index.delete(filter, entry);
          }
        }
        for (const log of asked) {
          const expected = [...list.entries()].filter(([entry, filter]) => !isLeft(entry) && matchesLog(filter, log));
          assert.deepEqual(
            [...index.match(log)].sort((a, b) => a - b),
            expected.map(([entry]) => entry),
          );
        }
        assert.equal(index.size, list.filter((_, entry) => !isLeft(entry)).length);
      },
    ),
  );
});

test("ten thousand filters on one address and one event are not all tried on each log", () => {
  const index = new FilterIndex<number>();
  const person = (at: number) => formatQuantity(at + 1).padEnd(66, "0") as Hash;
  for (let entry = 0; entry < 10_000; entry++) {
    const topics = [topicOf(0), null, person(entry)];
    index.add(parseLogQuery({ address: addressOf(0), topics }, limits).filter, entry);
  }
  let tried = 0;
  for (let at = 0; at < 1_000; at++) {
    const log = {
      address: addressOf(0),
      get topics() {
        tried++;
        return [topicOf(0), topicOf(1), person(at)];
      },
    };
    assert.ok([...index.match(log)].includes(at));
  }
  assert.ok(tried < 10_000, `topics were read ${tried} times`);
});
