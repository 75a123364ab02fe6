import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Pieces } from "../../src/limits/pieces.ts";

const sizes = fc.array(fc.oneof(fc.nat(3), fc.nat(1_100), fc.nat(9_000)), { maxLength: 60 });

test("all bytes are returned in their order, whatever the pieces", () => {
  fc.assert(
    fc.property(sizes, (lengths) => {
      let next = 0;
      const pieces = new Pieces();
      const added = lengths.map((length) => Buffer.from(Array.from({ length }, () => next++ % 251)));
      for (const piece of added) {
        pieces.add(piece);
      }
      const expected = Buffer.concat(added);
      assert.deepEqual(Buffer.concat(pieces.list()), expected);
      assert.deepEqual(pieces.join(), expected);
      assert.equal(pieces.bytes, expected.length);
      pieces.clear();
      assert.equal(pieces.join().length, 0);
    }),
  );
});

test("small pieces become few, also between large ones", () => {
  const small = new Pieces();
  const mixed = new Pieces();
  for (let index = 0; index < 10_000; index++) {
    small.add(Buffer.alloc(1));
    mixed.add(Buffer.alloc(index % 2 === 0 ? 1 : 1_024));
  }
  assert.equal(small.list().length, 3);
  assert.equal(mixed.list().length, 10_000);
  assert.equal(new Set(mixed.list().map(({ buffer }) => buffer)).size, 5_000 + 2);
});
