import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeadChange, Heads } from "../../src/core/heads.ts";
import { followAgreed, followOnly } from "../../src/heads/followHeads.ts";
import { type ChainOptions, createHeads } from "../support/builders/heads.ts";

const agreed = (options: ChainOptions): Heads => ({ ...createHeads(options), isAgreed: true });

/** Follows the agreed heads of a chain. `show` serves the next heads and returns the numbers of the blocks that a listener was told of. */
const follow = (first: Heads | undefined) => {
  let current = first;
  let listen: (change: HeadChange) => void = () => {};
  const told: HeadChange[] = [];
  const followed = followAgreed({
    current: () => current,
    subscribe: (listener) => {
      listen = listener;
      return () => {};
    },
  });
  followed.subscribe((change) => {
    told.push(change);
  });
  const numbersOf = (side: "from" | "to") => told.flatMap((change) => change[side].map(({ number }) => Number(number)));
  const show = (heads: Heads) => {
    told.length = 0;
    current = heads;
    listen({ heads, from: [], to: [] });
    return { from: numbersOf("from"), to: numbersOf("to") };
  };
  return { followed, show };
};

const NOTHING = { from: [], to: [] };

test("heads that are not agreed are told once a later one is, and those before stay current", () => {
  const { followed, show } = follow(agreed({ latest: 10 }));
  assert.deepEqual(show(agreed({ latest: 11 })), { from: [], to: [11] });
  assert.deepEqual(show(createHeads({ latest: 12 })), NOTHING);
  assert.deepEqual(show(createHeads({ latest: 13 })), NOTHING);
  assert.equal(followed.current()?.latest.number, 11n);
  assert.deepEqual(show(agreed({ latest: 13 })), { from: [], to: [12, 13] });
  assert.equal(followed.current()?.latest.number, 13n);
});

test("a branch that was never agreed is not told, and one that replaces agreed blocks is", () => {
  const { followed, show } = follow(agreed({ latest: 10 }));
  assert.deepEqual(show(createHeads({ latest: 12, fork: 1, forkedAt: 10 })), NOTHING);
  assert.equal(followed.current()?.at(10n)?.hash, createHeads({ latest: 10 }).latest.hash);
  assert.deepEqual(show(agreed({ latest: 11, fork: 2, forkedAt: 10 })), { from: [10], to: [10, 11] });
});

test("without an agreed head there is no current one", () => {
  const { followed, show } = follow(createHeads({ latest: 10 }));
  assert.equal(followed.current(), undefined);
  assert.deepEqual(show(createHeads({ latest: 11 })), NOTHING);
  assert.deepEqual(show(agreed({ latest: 12 })), NOTHING);
  assert.deepEqual(show(agreed({ latest: 13 })), { from: [], to: [13] });
});

test("blocks that are refused are not told, and heads stay current", () => {
  const before = createHeads({ latest: 10 });
  const heads = createHeads({ latest: 12 });
  const to = [11n, 12n].flatMap((number) => heads.at(number) ?? []);
  const told: HeadChange[] = [];
  const followed = followOnly(
    {
      current: () => before,
      subscribe: (listener) => {
        listener({ heads, from: [], to });
        return () => {};
      },
    },
    ({ number }) => number !== 11n,
  );
  followed.subscribe((change) => told.push(change));
  assert.deepEqual(told, [{ heads, from: [], to: to.slice(1) }]);
  assert.equal(followed.current(), before);
});

test("after lower heads of its branch, a follower is told of each block once", () => {
  const { followed, show } = follow(agreed({ latest: 10 }));
  assert.deepEqual(show(agreed({ latest: 12 })), { from: [], to: [11, 12] });
  assert.deepEqual(show(agreed({ latest: 10 })), NOTHING);
  // The reader of their logs still finds the blocks that the follower was told of.
  assert.equal(followed.current()?.latest.number, 12n);
  assert.deepEqual(show(agreed({ latest: 14 })), { from: [], to: [13, 14] });
});

test("after a lower head, a follower is told of the blocks that another branch replaces", () => {
  const { followed, show } = follow(agreed({ latest: 12 }));
  show(agreed({ latest: 10 }));
  assert.deepEqual(show(agreed({ latest: 10, fork: 2, forkedAt: 10 })), { from: [10, 11, 12], to: [10] });
  assert.equal(followed.current()?.latest.number, 10n);
});
