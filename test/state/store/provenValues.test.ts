import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import type { AccountWrites } from "../../../src/state/writeSet.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { createRandomBelow } from "../../support/builders/randomValues.ts";
import { runAll } from "../../support/builders/runAll.ts";
import { addressOf } from "../../support/builders/stateModel.ts";

const BYTES = 1_000_000;
const ALICE = addressOf(0);
const BALANCE: StateKey = { address: ALICE, field: "balance", slot: undefined };
const SLOTS = 6;
const digitsOf = (value: number): string => value.toString(16).padStart(64, "0");
const ONE = digitsOf(1);
const block = (number: number, fork = 0): BlockId => ({ number: BigInt(number), hash: hashOf(number, fork) });
const slotKey = (slot: number): StateKey & { readonly slot: Hash } => ({
  ...{ address: ALICE, field: "slot", slot: `0x${digitsOf(slot)}` },
});

const begin = (): ValueStore => {
  const values = new ValueStore(BYTES);
  values.begin(block(0));
  return values;
};

const apply = (values: ValueStore, at: BlockId, writes: Partial<AccountWrites>, isProven: boolean): void => {
  const packed = packWrites(new Map([[ALICE, { slots: new Map(), ...writes }]]));
  assert.equal(runAll(values.apply({ block: at, packed, grade: isProven ? "proven" : "stated" })), true);
  runAll(values.prune());
};

/** Whether the value is known and proven after a block. Undefined: it is not known. */
const isProven = (values: ValueStore, key: StateKey, at: BlockId): boolean | undefined => {
  const entry = values.readableEntry(key, at);
  return entry === 0 ? undefined : values.gradeAt(entry, at) === "proven";
};

test("a value is proven from its proof on, as long as each write set is proven and does not name it", () => {
  const values = begin();
  assert.equal(values.add(BALANCE, block(0), ONE), true);
  apply(values, block(1), {}, true);
  assert.equal(isProven(values, BALANCE, block(1)), false, "a node said so");
  assert.equal(values.add(BALANCE, block(1), ONE, "proven"), true);
  apply(values, block(2), {}, true);
  assert.deepEqual(
    [0, 1, 2].map((number) => isProven(values, BALANCE, block(number))),
    [false, true, true],
  );
  apply(values, block(3), {}, false);
  assert.equal(values.get(BALANCE, block(3)), ONE, "it is still known");
  assert.deepEqual([isProven(values, BALANCE, block(2)), isProven(values, BALANCE, block(3))], [true, false]);
  apply(values, block(4), {}, true);
  assert.equal(isProven(values, BALANCE, block(4)), false, "the bit has ended");
  assert.equal(values.add(BALANCE, block(4), ONE, "proven"), true);
  assert.equal(isProven(values, BALANCE, block(4)), true);
});

test("a proven list gives its values the bit, and another write set takes it", () => {
  const values = begin();
  apply(values, block(1), { balance: 1n }, true);
  assert.equal(isProven(values, BALANCE, block(1)), true);
  apply(values, block(2), { balance: 2n }, false);
  assert.deepEqual([isProven(values, BALANCE, block(1)), isProven(values, BALANCE, block(2))], [true, false]);
  assert.equal(values.add(BALANCE, block(2), digitsOf(2), "proven"), true, "a proof at the block itself");
  assert.equal(isProven(values, BALANCE, block(2)), true);
});

test("a proof that contradicts a known value does not replace it, and the value is not proven", () => {
  const values = begin();
  values.add(BALANCE, block(0), ONE);
  apply(values, block(1), {}, true);
  assert.equal(values.add(BALANCE, block(1), digitsOf(2), "proven"), false);
  assert.equal(values.get(BALANCE, block(1)), ONE);
  assert.equal(isProven(values, BALANCE, block(1)), false);
});

test("a proof is undone with its block, also if the value was known before", () => {
  const values = begin();
  values.add(BALANCE, block(0), ONE);
  apply(values, block(1), {}, true);
  values.add(BALANCE, block(1), ONE, "proven");
  runAll(values.undoTo(0n));
  apply(values, block(1, 1), {}, true);
  assert.equal(values.get(BALANCE, block(1, 1)), ONE);
  assert.equal(isProven(values, BALANCE, block(1, 1)), false, "the root was that of an orphan");
});

test("a block without a proven write set counts only while it is canonical", () => {
  const values = begin();
  values.add(BALANCE, block(0), ONE, "proven");
  apply(values, block(1), {}, false);
  assert.equal(isProven(values, BALANCE, block(1)), false);
  runAll(values.undoTo(0n));
  apply(values, block(1, 1), {}, true);
  assert.equal(isProven(values, BALANCE, block(1, 1)), true);
});

test("a restored value is known and not proven", () => {
  const values = begin();
  values.add(BALANCE, block(0), ONE, "proven");
  const bytes = Buffer.alloc(52);
  const [listed] = [...values.takeChanges(block(0), true)].flatMap((each) => each ?? []);
  assert.ok(listed !== undefined);
  const place = { bytes, address: 0, slot: undefined, value: 20 };
  values.copyTo(listed, place);
  const restored = begin();
  assert.equal(restored.restore("balance", place, block(0)), true);
  assert.equal(restored.get(BALANCE, block(0)), ONE);
  assert.equal(isProven(restored, BALANCE, block(0)), false);
});

/** What a simple model knows of one slot at one block. */
interface ModelSlot {
  readonly value: number;
  readonly isProven: boolean;
}

interface ModelBlock {
  readonly id: BlockId;
  readonly slots: ReadonlyMap<number, ModelSlot>;
}

/** Random blocks with and without proven write sets, proofs, values of nodes, and reorganisations, in a store and in a model. */
class ModelRun {
  readonly #below: (limit: number) => number;
  readonly #values: ValueStore;
  readonly #chain: ModelBlock[] = [
    { id: block(0), slots: new Map(Array.from({ length: SLOTS }, (_, slot) => [slot, { value: 1, isProven: false }])) },
  ];
  #blocks = 0;
  /** The reads that the store has proven. */
  proven = 0;

  constructor(seed: number, values: ValueStore) {
    this.#below = createRandomBelow(seed);
    this.#values = values;
    values.begin(block(0));
  }

  step(): void {
    const tip = this.#chain.at(-1);
    if (this.#below(12) === 0 && this.#chain.length > 2) {
      this.#chain.length -= 1 + this.#below(Math.min(8, this.#chain.length - 1));
      runAll(this.#values.undoTo(this.#chain.at(-1)?.id.number ?? 0n));
    } else if (tip !== undefined) {
      this.#extend(tip);
    }
    this.#compare();
  }

  #extend(tip: ModelBlock): void {
    const isListed = this.#below(10) > 0;
    this.#blocks++;
    const slots = new Map(tip.slots);
    const writes = new Map<Hash, Uint8Array>();
    for (const [slot, { value, isProven: was }] of tip.slots) {
      if (this.#below(6) === 0) {
        writes.set(slotKey(slot).slot, Uint8Array.of(this.#blocks >> 8, this.#blocks));
        slots.set(slot, { value: this.#blocks, isProven: isListed });
      } else {
        slots.set(slot, { value, isProven: was && isListed });
      }
    }
    const id = block(this.#chain.length, this.#blocks);
    apply(this.#values, id, { slots: writes }, isListed);
    this.#learn(id, slots);
    this.#chain.push({ id, slots });
  }

  /** Adds one value by proof, or as a node states it. */
  #learn(id: BlockId, slots: Map<number, ModelSlot>): void {
    const slot = this.#below(SLOTS);
    const known = slots.get(slot);
    const way = this.#below(3);
    if (known !== undefined && way === 0) {
      this.#values.add(slotKey(slot), id, digitsOf(known.value), "proven");
      slots.set(slot, { ...known, isProven: true });
    } else if (known !== undefined && way === 1) {
      this.#values.add(slotKey(slot), id, digitsOf(known.value));
    }
  }

  /** Compares all values at one block. */
  #compare(): void {
    const at = this.#chain[this.#below(this.#chain.length)];
    for (const [slot, expected] of at?.slots ?? []) {
      const key = slotKey(slot);
      if (at !== undefined && isProven(this.#values, key, at.id) === true) {
        this.proven++;
        assert.equal(this.#values.get(key, at.id), digitsOf(expected.value));
        assert.equal(expected.isProven, true, `block ${at.id.number}, slot ${slot}`);
      }
    }
  }
}

test("random blocks, proofs, evictions and reorganisations: nothing is proven that a simple model does not prove", () => {
  let proven = 0;
  for (let seed = 0; seed < 20; seed++) {
    // With little room, entries are evicted.
    const run = new ModelRun(seed, new ValueStore(seed % 2 === 0 ? BYTES : 20_000));
    for (let step = 0; step < 400; step++) {
      run.step();
    }
    proven += run.proven;
  }
  assert.ok(proven > 5_000, `${proven} proven reads`);
});
