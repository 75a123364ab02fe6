import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockContent } from "../../../src/state/sources/blockContent.ts";
import { CompletedFeedSource } from "../../../src/state/sources/completedFeedSource.ts";
import type { PartialExecution } from "../../../src/state/sources/feedSource.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import type { WriteSet, WriteSetFailure } from "../../../src/state/writeSet.ts";
import { hashOf } from "../../support/builders/flashblocks.ts";

const SIGNAL = new AbortController().signal;
const BLOCK = { number: 101n, hash: hashOf(101) };
const WRITE_SET: WriteSet = { block: BLOCK, packed: packWrites(new Map()) };
const UNITS = 120;

interface Rig {
  readonly outcomes?: readonly (WriteSet | WriteSetFailure)[];
  /** Whether this number of units a block pays. */
  readonly pays?: (units: number) => boolean;
  readonly complete?: PartialExecution["complete"];
}

const createSource = ({ outcomes = [], pays = () => true, complete = async () => [] }: Rig) => {
  const spent: number[] = [];
  const asked: number[] = [];
  const left = [...outcomes];
  const source = new CompletedFeedSource({
    feed: {
      read: async () => left.shift() ?? "incomplete",
      partial: () => ({ block: BLOCK, complete }),
    },
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
  return { spent, asked, read: () => source.read(BLOCK, SIGNAL) };
};

test("a block that the feed brought whole costs nothing, and one that it brought in part costs units", async () => {
  const { spent, read } = createSource({ outcomes: [WRITE_SET] });
  assert.equal(await read(), WRITE_SET);
  assert.deepEqual(spent, []);
  assert.equal(typeof (await read()), "object");
  assert.deepEqual(spent, [UNITS]);
});

test("a block is completed if the reads pay for the share of blocks that need it", async () => {
  const outcomes = Array.from({ length: 9 }, () => WRITE_SET);
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
  const outcome = (complete: PartialExecution["complete"]) => createSource({ complete }).read();
  assert.equal(await outcome(async () => "mismatch"), "mismatch");
  assert.equal(await outcome(() => Promise.reject(new Error("cancelled"))), "error");
  assert.equal(await outcome(() => new Promise(() => undefined)), "late");
});
