import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { BlockContent } from "../../../src/state/sources/blockContent.ts";
import { type BlockChanges, type ExecutedBlock, ExecutedSource } from "../../../src/state/sources/executedSource.ts";
import { hashOf } from "../../support/builders/flashblocks.ts";

const SIGNAL = new AbortController().signal;
const BLOCK = { number: 101n, hash: hashOf(101) };
const UNITS = 120;
const WHOLE_UNITS = 420;

interface Rig {
  readonly kind?: ExecutedSource["kind"] | undefined;
  /** Of the first blocks. The others are executed in part. */
  readonly outcomes?: readonly ExecutedBlock["changes"][];
  /** Whether this number of units a block pays. */
  readonly pays?: (units: number) => boolean;
  readonly complete?: ((content: BlockContent) => Promise<BlockChanges>) | undefined;
}

const createSource = ({ kind = "feed", outcomes = [], pays = () => true, complete = async () => [] }: Rig) => {
  const spent: number[] = [];
  const asked: number[] = [];
  const left = [...outcomes];
  const source = new ExecutedSource({
    kind,
    find: () => ({ block: BLOCK, changes: left.shift() ?? complete }),
    cost: {
      unitsOf: () => 20,
      spend: (_purpose, units) => spent.push(units),
      shouldFollow: (units) => {
        asked.push(units);
        return pays(units);
      },
    },
    thread: { run: async () => ({ kind: "content", content: {} as BlockContent }) },
    readBlock: async () => new Uint8Array(0),
    blockTimeMs: () => 200,
    nowMs: () => 0,
  });
  return { spent, asked, source, read: () => source.read(BLOCK, SIGNAL) };
};

/** A block that the feed brought whole. */
const WHOLE = Promise.resolve([]);

test("a block that the feed brought whole costs nothing, and one that it brought in part costs units", async () => {
  const { spent, read, source } = createSource({ outcomes: [WHOLE] });
  assert.equal(source.unitsPerBlock, 0);
  assert.equal(typeof (await read()), "object");
  assert.deepEqual(spent, []);
  assert.equal(typeof (await read()), "object");
  assert.deepEqual(spent, [UNITS]);
});

test("a block is completed if the reads pay for the share of blocks that need it", async () => {
  const outcomes = Array.from({ length: 9 }, () => WHOLE);
  const { spent, asked, read } = createSource({ outcomes, pays: (units) => units < UNITS / 5 });
  for (const _ of outcomes) {
    await read();
  }
  assert.equal(typeof (await read()), "object");
  assert.equal(typeof (await read()), "object");
  assert.equal(await read(), "incomplete", "one block in four needs it now");
  assert.deepEqual(asked.map(Math.round), [12, 22, 30]);
  assert.equal(spent.length, 2);
});

test("a completion that fails or lasts longer than a block has a reason, and no write set", async (t) => {
  // The timer of the source does not keep the process alive.
  const alive = setInterval(() => undefined, 1_000);
  t.after(() => clearInterval(alive));
  const outcome = (kind: Rig["kind"], complete: Rig["complete"]) => createSource({ kind, complete }).read();
  const checkOutcomes = async (kind: Rig["kind"]): Promise<void> => {
    assert.equal(await outcome(kind, async () => "mismatch"), "mismatch");
    assert.equal(await outcome(kind, () => Promise.reject(new Error("cancelled"))), "error");
    assert.equal(await outcome(kind, () => new Promise(() => undefined)), "late");
  };
  await Promise.all([checkOutcomes("feed"), checkOutcomes("execution")]);
});

test("blocks that the source executes itself cost the follower's units, and are executed one after another", async () => {
  const first = Promise.withResolvers<BlockChanges>();
  const order: string[] = [];
  const { source, spent, asked, read } = createSource({
    kind: "execution",
    outcomes: [() => first.promise],
    complete: async () => {
      order.push("second");
      return [];
    },
  });
  assert.equal(source.unitsPerBlock, WHOLE_UNITS);
  const reads = [read(), read()];
  await turn();
  order.push("first");
  first.resolve("error");
  assert.deepEqual(
    (await Promise.all(reads)).map((outcome) => typeof outcome),
    ["string", "object"],
  );
  assert.deepEqual([order, spent, asked], [["first", "second"], [], []]);
});
