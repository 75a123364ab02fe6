import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonItems, packItems } from "../../src/methods/jsonItems.ts";

const unpack = (items: readonly (string | undefined)[], isWhole = true): JsonItems =>
  new JsonItems(packItems({ head: '{"nämé":"é","list":[', items, tail: "]}", isWhole }));

for (const items of [
  [],
  ['"é"'],
  ['"one"', '"two"'],
  [undefined, '"two"'],
  ['"one"', undefined, '"three"', undefined],
]) {
  test(`items are found at their places (${JSON.stringify(items)})`, () => {
    const unpacked = unpack(items);
    assert.equal(unpacked.length, items.length);
    for (const [index, item] of items.entries()) {
      assert.equal(unpacked.at(index)?.toString(), item);
      assert.equal(unpacked.indexOf(item ?? "no"), item === undefined ? -1 : index);
    }
    const list = items.flatMap((item) => (item === undefined ? [] : [JSON.parse(item)]));
    assert.deepEqual(JSON.parse(Buffer.from(unpacked.text).toString()), { nämé: "é", list });
  });
}

test("a text that must not be returned as a whole has no whole", () => {
  assert.equal(unpack([], false).whole, undefined);
  assert.deepEqual(unpack([]).whole, unpack([], false).text);
});
