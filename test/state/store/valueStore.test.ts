import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import type { Address } from "../../../src/ethereum/hex.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { readableBlocks } from "../../../src/state/store/followedBlocks.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import { ValueTable } from "../../../src/state/store/valueTable.ts";
import type { AccountWrites } from "../../../src/state/writeSet.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { createRandom } from "../../support/builders/randomValues.ts";
import { runAll } from "../../support/builders/runAll.ts";
import { addressOf } from "../../support/builders/stateModel.ts";
import { ModelRun } from "../modelRun.ts";

const SEEDS = 12;
const BLOCKS = 400;
const LARGE_BYTES = 4 * 1024 * 1024;
/** Room for some 600 entries, less than the blocks write. */
const SMALL_BYTES = 100_000;

const runSeeds = (bytes: number): { readonly share: number } => {
  let hits = 0;
  let reads = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = new ModelRun(createRandom(seed), new ValueStore(bytes));
    run.run(BLOCKS);
    hits += run.hits;
    reads += run.reads;
  }
  return { share: hits / reads };
};

test("values of random blocks, reorganisations and late fetches are those of a simple model", () => {
  const { share } = runSeeds(LARGE_BYTES);
  assert.ok(share > 0.7, `${share} of the reads are hits`);
});

test("values are right while entries are evicted", () => {
  const { share } = runSeeds(SMALL_BYTES);
  assert.ok(share > 0.2, `${share} of the reads are hits`);
});

const ALICE = addressOf(0);
const BOB = addressOf(1);
const HEX_ONE = "1".padStart(64, "0");
const BALANCE: StateKey = { address: ALICE, field: "balance", slot: undefined };
const slotKey = (slot: number): StateKey => ({
  address: ALICE,
  field: "slot",
  slot: `0x${slot.toString(16).padStart(64, "0")}`,
});
const block = (number: number): BlockId => ({ number: BigInt(number), hash: hashOf(number) });

/** Applies a block that writes one account. */
const write = (values: ValueStore, at: BlockId, writes: Partial<AccountWrites>): void => {
  const steps = values.apply({
    block: at,
    grade: "checked",
    packed: packWrites(new Map([[ALICE, { slots: new Map(), ...writes }]])),
  });
  assert.equal(runAll(steps), true);
  runAll(values.prune());
};

test("the newest 256 blocks are readable, and older values are removed", () => {
  const values = new ValueStore(LARGE_BYTES);
  values.begin(block(0));
  for (let number = 1; number <= 1_000; number++) {
    write(values, block(number), { balance: BigInt(number) });
  }
  for (const [number, isReadable] of [
    [1_000, true],
    [745, true],
    [744, false],
  ] as const) {
    const expected = isReadable ? number.toString(16).padStart(64, "0") : undefined;
    assert.equal(values.get(BALANCE, block(number)), expected);
  }
  assert.equal(values.size, 256);
});

test("on fast blocks, those of five minutes are readable", () => {
  const values = new ValueStore(LARGE_BYTES);
  values.maxReadable = readableBlocks(200);
  values.begin(block(0));
  for (let number = 1; number <= 1_600; number++) {
    write(values, block(number), { balance: BigInt(number) });
  }
  assert.deepEqual([values.isReadable(block(101)), values.isReadable(block(100))], [true, false]);
  assert.equal(readableBlocks(12_000), 256);
});

test("write sets of old blocks take half of the table at most", () => {
  const values = new ValueStore(SMALL_BYTES);
  values.begin(block(0));
  for (let slot = 0; slot < 2_000; slot++) {
    values.add(slotKey(slot), block(0), HEX_ONE);
  }
  const full = values.size;
  for (let number = 1; number <= 200; number++) {
    const slots = Array.from(
      { length: 10 },
      (_, index) => [slotKey(3_000 + index).slot ?? "0x", Uint8Array.of(1)] as const,
    );
    write(values, block(number), { slots: new Map(slots) });
  }
  assert.equal(values.isReadable(block(200 - Math.floor(full / 20))), true);
  assert.equal(values.isReadable(block(200 - Math.ceil(full / 20) - 1)), false);
  assert.ok(values.size > 0.9 * full);
});

test("slots that were cleared are removed once no reader can see them", () => {
  const values = new ValueStore(LARGE_BYTES);
  values.begin(block(0));
  for (let slot = 0; slot < 1_000; slot++) {
    values.add(slotKey(slot), block(0), HEX_ONE);
  }
  write(values, block(1), { otherSlots: "cleared" });
  assert.equal(values.get(slotKey(5), block(0)), HEX_ONE);
  assert.equal(values.get(slotKey(5), block(1)), "0".repeat(64));
  for (let number = 2; number <= 300; number++) {
    write(values, block(number), {});
  }
  assert.equal(values.size, 0);
});

test("once a reorganisation has removed the block that cleared slots, a slot costs one look-up", (t) => {
  const values = new ValueStore(LARGE_BYTES);
  values.begin(block(0));
  values.add(slotKey(5), block(0), HEX_ONE);
  const find = t.mock.method(ValueTable.prototype, "find");
  const lookUps = (at: number): number => {
    find.mock.resetCalls();
    values.get(slotKey(5), block(at));
    return find.mock.callCount();
  };
  assert.equal(lookUps(0), 1);
  write(values, block(1), { otherSlots: "cleared" });
  assert.equal(lookUps(1), 2);
  runAll(values.undoTo(0n));
  assert.equal(lookUps(0), 1);
});

test("an account whose slots end in every block loses no values of others while a large table is swept", () => {
  const values = new ValueStore(2 * LARGE_BYTES);
  values.begin(block(0));
  const written = 80;
  const slotOf = (number: number, index: number): StateKey => ({ ...slotKey(number * written + index), address: BOB });
  const count = 700;
  for (let number = 1; number <= count; number++) {
    const slots = new Map(
      Array.from({ length: written }, (_, index) => [slotOf(number, index).slot ?? "0x", Uint8Array.of(1)] as const),
    );
    const accounts = new Map<Address, AccountWrites>([
      [ALICE, { slots: new Map(), otherSlots: "unknown" }],
      [BOB, { slots }],
    ]);
    assert.equal(runAll(values.apply({ block: block(number), grade: "checked", packed: packWrites(accounts) })), true);
    values.add(slotKey(1), block(number), HEX_ONE);
    runAll(values.prune());
  }
  for (let number = count - 200; number <= count; number++) {
    for (let index = 0; index < written; index++) {
      assert.equal(values.get(slotOf(number, index), block(count)), HEX_ONE);
    }
    assert.equal(values.get(slotKey(1), block(number)), HEX_ONE);
  }
});

test("values stay within the limit, and those that are read stay longest", () => {
  const bytes = 1_000_000;
  const values = new ValueStore(bytes);
  values.begin(block(0));
  values.add(BALANCE, block(0), HEX_ONE);
  for (let slot = 0; slot < 50_000; slot++) {
    values.add(slotKey(slot), block(0), HEX_ONE);
    assert.equal(values.get(BALANCE, block(0)), HEX_ONE);
  }
  assert.ok(values.size < 50_000);
  assert.ok(values.bytes <= bytes, `${values.bytes} bytes`);
});

test("a value of a block that ends to be readable for lack of room does not enter", () => {
  const values = new ValueStore(4_000);
  const oldest = block(0);
  values.begin(oldest);
  write(values, block(1), { balance: 1n, nonce: 1n });
  const slots = new Map(
    Array.from({ length: 100 }, (_, slot) => [slotKey(slot).slot ?? "0x", Uint8Array.of(1)] as const),
  );
  const steps = values.apply({ block: block(2), grade: "checked", packed: packWrites(new Map([[ALICE, { slots }]])) });
  for (let slot = 0; values.isReadable(oldest); slot++) {
    // Each of them takes the room of an older value, or of the oldest block.
    assert.equal(steps.next().done, false);
    const key = { ...slotKey(slot), address: BOB };
    values.add(key, oldest, HEX_ONE);
    assert.equal(values.get(key, oldest), values.isReadable(oldest) ? HEX_ONE : undefined);
  }
});
