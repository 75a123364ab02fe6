import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeadChange, Heads } from "../../src/core/heads.ts";
import { HeadsBehind } from "../../src/heads/headsBehind.ts";
import { createHeads } from "../support/builders/heads.ts";

const CONFIRMATIONS = 10;

/** Follows heads behind. `show` serves the next heads and returns the numbers of the blocks that a listener was told of. */
const follow = (first: Heads) => {
  let current = first;
  let listen: (change: HeadChange) => void = () => {};
  let told: HeadChange | undefined;
  const followed = new HeadsBehind().follow(
    {
      current: () => current,
      subscribe: (listener) => {
        listen = listener;
        return () => {};
      },
    },
    CONFIRMATIONS,
  );
  followed.subscribe((change) => {
    told = change;
  });
  const numbersOf = (blocks: HeadChange["to"] | undefined) => blocks?.map(({ number }) => Number(number)) ?? [];
  const show = (heads: Heads) => {
    current = heads;
    listen({ heads, from: [], to: [] });
    return { from: numbersOf(told?.from), to: numbersOf(told?.to) };
  };
  return { followed, show };
};

test("after lower heads of its branch, a follower is told of each block once", () => {
  const { followed, show } = follow(createHeads({ latest: 20 }));
  assert.deepEqual(show(createHeads({ latest: 22 })), { from: [], to: [11, 12] });
  assert.deepEqual(show(createHeads({ latest: 20 })), { from: [], to: [] });
  // The reader of their logs still finds the blocks that the follower was told of.
  assert.equal(followed.current()?.latest.number, 12n);
  assert.deepEqual(show(createHeads({ latest: 24 })), { from: [], to: [13, 14] });
});

test("after a lower head, a follower is told of the blocks that another branch replaces", () => {
  const { followed, show } = follow(createHeads({ latest: 20 }));
  show(createHeads({ latest: 22 }));
  show(createHeads({ latest: 20 }));
  assert.deepEqual(show(createHeads({ latest: 23, fork: 1, forkedAt: 12 })), { from: [12], to: [12, 13] });
  assert.deepEqual(show(createHeads({ latest: 20, fork: 2, forkedAt: 10 })), { from: [10, 11, 12, 13], to: [10] });
  assert.equal(followed.current()?.latest.number, 10n);
});
