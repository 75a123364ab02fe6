import assert from "node:assert/strict";
import { test } from "node:test";
import { LiarMarks, type MarkStore } from "../../src/cache/liarMarks.ts";

const PREFIX = "forebay1:1:00:";
const LIAR = { node: "liar", origin: "other" };

/** A store that has a mark of every node, and returns it when `until` resolves. */
const markedAt = (liedAtMs: number, until: Promise<void>): MarkStore => ({
  get: async () => {
    await until;
    return { body: new Uint8Array(), isFinal: true, storedAtMs: liedAtMs };
  },
  set: () => undefined,
});

test("no value is used before the mark of its node is read, whoever asks first", async (t) => {
  const liedAtMs = Date.now();
  const { promise, resolve } = Promise.withResolvers<void>();
  const marks = new LiarMarks([markedAt(liedAtMs, promise)]);
  t.after(() => marks.close());
  const own = marks.sourceOf(PREFIX, "own", "own");
  const found = Promise.all([
    marks.find(PREFIX, LIAR),
    marks.find(PREFIX, LIAR),
    marks.find(PREFIX, { node: "own", origin: "own" }),
  ]);
  resolve();
  const [first, second, ofOwn] = await found;
  assert.deepEqual([first?.liedAtMs, second?.liedAtMs, ofOwn?.liedAtMs], [liedAtMs, liedAtMs, liedAtMs]);
  assert.equal(first, second);
  assert.equal(ofOwn, own);
  assert.equal(marks.find(PREFIX, LIAR), first);
});

test("a value is not used while the mark of its node cannot be read", async (t) => {
  const marks = new LiarMarks([markedAt(1, new Promise(() => undefined))]);
  t.after(() => marks.close());
  assert.equal(await marks.find(PREFIX, LIAR), undefined);
});
