import assert from "node:assert/strict";
import { test } from "node:test";
import { asText } from "../../src/json/jsonBytes.ts";
import { elementAt, elements, members, skipObjectUnchecked, skipValueUnchecked } from "../../src/json/members.ts";
import { MAX_DEPTH, skipObject, skipValue, TOO_DEEP } from "../../src/json/skipValue.ts";

const LONG = "x".repeat(200);
const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -0.5, 12e300, 1e-7, "", "a", LONG, `${LONG}\\`, `\\"${LONG}"`, "\\\\", "\u0001\n é 漢 😀"],
  // Escapes at every distance from the length that the skipping scanner compares byte by byte.
  ...Array.from({ length: 12 }, (_, at) => `${"x".repeat(62 + at)}\\"\\${LONG}"`),
  ...[[], {}, [[], [{}]], { a: { b: ["}", '"]'] } }, [1, " , ", { "": null }]],
];

const bytesOf = (value: unknown, space?: number) => Buffer.from(JSON.stringify(value, undefined, space));

test("both scanners find the end of every valid value", () => {
  for (const value of VALUES) {
    for (const space of [undefined, 1]) {
      const text = bytesOf(value, space);
      const bytes = Buffer.concat([text, Buffer.from(" ,")]);
      assert.equal(skipValue(bytes, 0, 1), text.length, text.toString());
      assert.equal(skipValueUnchecked(bytes, 0), text.length, text.toString());
    }
  }
});

test("both scanners report the positions of an object's members", () => {
  const object = Object.fromEntries(VALUES.map((value, index) => [`"key" ${index}`, value]));
  for (const space of [undefined, 2]) {
    const bytes = bytesOf(object, space);
    const read = (skip: (onMember: Parameters<typeof skipObjectUnchecked>[2]) => number) => {
      const entries: [unknown, unknown][] = [];
      const end = skip((...positions) => {
        const [key, value] = [positions.slice(0, 2), positions.slice(2)].map(([at, after]) =>
          JSON.parse(bytes.toString("utf8", at, after)),
        );
        entries.push([key, value]);
      });
      assert.equal(end, bytes.length);
      return Object.fromEntries(entries);
    };
    assert.deepEqual(
      read((onMember) => skipObject(bytes, 0, 1, onMember)),
      object,
    );
    assert.deepEqual(
      read((onMember) => skipObjectUnchecked(bytes, 0, onMember)),
      object,
    );
  }
});

test("the strict scanner rejects text that JSON.parse rejects", () => {
  for (const text of [
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "-",
    "tru",
    "nul",
    '"\\x"',
    '"\\u12g4"',
    '"\n"',
    '"a',
    "[1,]",
    "[,]",
  ]) {
    const end = skipValue(Buffer.from(text), 0, 1);
    assert.ok(end !== text.length, text);
    assert.throws(() => JSON.parse(text), text);
  }
  assert.equal(skipValue(Buffer.from('{"a":1,}'), 0, 1), -1);
  assert.equal(skipValue(Buffer.from("{1:2}"), 0, 1), -1);
});

test("the strict scanner limits the depth, the skipping scanner does not", () => {
  const deep = (levels: number) => Buffer.from(`${"[".repeat(levels)}${"]".repeat(levels)}`);
  assert.equal(skipValue(deep(MAX_DEPTH), 0, 1), 2 * MAX_DEPTH);
  assert.equal(skipValue(deep(MAX_DEPTH + 1), 0, 1), TOO_DEEP);
  assert.equal(skipValueUnchecked(deep(10_000), 0), 20_000);
});

test("the skipping scanner reports text that ends inside a value", () => {
  for (const text of ["", '"a', `"${LONG}`, '"a\\"', "[1", '{"a":1', "[[]", '{"a":"']) {
    assert.equal(skipValueUnchecked(Buffer.from(text), 0), -1, text);
  }
  for (const text of ["{", '{"a"}', '{"a":}', '{"a":1,}', '{"a":1 "b":2}']) {
    assert.equal(
      skipObjectUnchecked(Buffer.from(text), 0, () => undefined),
      -1,
      text,
    );
  }
});

test("members and elements yield the parts of a text in order", () => {
  const object = bytesOf({ id: 1, result: [1, "]"], "": null }, 1);
  const yielded = Array.from(members(object), ({ key, value, start }) => [
    key,
    asText(value),
    object[start] === value[0],
  ]);
  assert.deepEqual(
    yielded.map(([key]) => key),
    ["id", "result", ""],
  );
  assert.ok(yielded.every(([, , isAtStart]) => isAtStart));
  const array = bytesOf(VALUES, 1);
  assert.deepEqual(
    Array.from(elements(array), (element) => JSON.parse(asText(element))),
    VALUES,
  );
  assert.deepEqual(JSON.parse(asText(elementAt(array, 9) ?? Buffer.of())), VALUES[9]);
  assert.equal(elementAt(array, VALUES.length), undefined);
  assert.equal(elementAt(Buffer.from("[]"), 0), undefined);
});
