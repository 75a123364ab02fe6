import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import type { AccountWrites, WriteSet, Written } from "../../../src/state/writeSet.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { createRandom } from "../../support/builders/randomValues.ts";
import { runAll } from "../../support/builders/runAll.ts";
import { addressOf } from "../../support/builders/stateModel.ts";

const ZERO = "0".repeat(64);
const RUNS = 50;
const BLOCKS = 150;
const MAX_SLOTS = 30;
const MAX_ADDRESSES = 4;
/** Room for 25 to 400 entries. */
const LEAST_BYTES = 4_000;
const MORE_BYTES = 60_000;
const DEPTH = 12;

const wordOf = (value: number): string => value.toString(16).padStart(64, "0");
const slotOf = (index: number): Hash => `0x${wordOf(index)}`;
const nameOf = (address: Address, slot: Hash): string => `${address}${slot}`;

interface Block extends BlockId {
  /** The slots that are not zero. */
  readonly slots: ReadonlyMap<string, string>;
}

/** A random chain whose contracts are cleared and written often, and a table that is too small for it. */
class ClearingRun {
  readonly #random: () => number;
  readonly #values: ValueStore;
  readonly #chain: Block[] = [{ number: 1_000n, hash: hashOf(1_000), slots: new Map() }];
  readonly #addresses: number;
  readonly #slots: number;
  #fork = 0;
  hits = 0;

  constructor(seed: number) {
    this.#random = createRandom(seed);
    this.#addresses = 1 + this.#below(MAX_ADDRESSES);
    this.#slots = 1 + this.#below(MAX_SLOTS);
    this.#values = new ValueStore(LEAST_BYTES + this.#below(MORE_BYTES));
    this.#values.begin(this.#head);
  }

  run(): void {
    for (let count = 0; count < BLOCKS; count++) {
      if (this.#below(20) === 0) {
        this.#reorganise();
      }
      this.#extend();
    }
  }

  get #head(): Block {
    const head = this.#chain.at(-1);
    assert.ok(head);
    return head;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #key(): StateKey & { readonly slot: Hash } {
    return { field: "slot", address: addressOf(this.#below(this.#addresses)), slot: slotOf(this.#below(this.#slots)) };
  }

  /** Runs a change to its end. Clients read, and nodes return values, between its steps. */
  #step<T>(steps: Generator<unknown, T>): T {
    for (let next = steps.next(); ; next = steps.next()) {
      this.#read(this.#below(6));
      if (next.done) {
        return next.value;
      }
    }
  }

  #read(count: number): void {
    for (let index = 0; index < count; index++) {
      const block = this.#chain.at(-1 - this.#below(DEPTH)) ?? this.#head;
      const key = this.#key();
      const expected = block.slots.get(nameOf(key.address, key.slot)) ?? ZERO;
      const text = `${key.address} ${key.slot} at ${block.number}`;
      if (this.#below(2) === 0) {
        assert.ok(this.#values.add(key, block, expected), text);
        continue;
      }
      const value = this.#values.get(key, block);
      assert.equal(value ?? expected, expected, text);
      this.hits += value === undefined ? 0 : 1;
    }
  }

  #reorganise(): void {
    const depth = Math.min(this.#chain.length - 1, 1 + this.#below(3));
    this.#chain.splice(this.#chain.length - depth);
    this.#fork++;
    if (this.#values.isReadable(this.#head)) {
      this.#step(this.#values.undoTo(this.#head.number));
    } else {
      this.#values.begin(this.#head);
    }
  }

  #extend(): void {
    const slots = new Map(this.#head.slots);
    const number = this.#head.number + 1n;
    const id = { number, hash: hashOf(number, this.#fork) };
    const addresses = Array.from({ length: this.#addresses }, (_, index) => addressOf(index));
    const written = addresses.filter(() => this.#below(2) === 0);
    const accounts = new Map(written.map((address) => [address, this.#write(address, slots)]));
    const isApplied = this.#step(
      this.#values.apply({ block: id, grade: "checked", packed: packWrites(accounts) } satisfies WriteSet),
    );
    this.#chain.push({ ...id, slots });
    if (isApplied) {
      this.#step(this.#values.prune());
    } else {
      this.#values.begin(this.#head);
    }
  }

  #write(address: Address, state: Map<string, string>): AccountWrites {
    const otherSlots = this.#below(3) === 0 ? "cleared" : undefined;
    if (otherSlots !== undefined) {
      for (const name of state.keys()) {
        if (name.startsWith(address)) {
          state.delete(name);
        }
      }
    }
    const slots = new Map<Hash, Written<Uint8Array>>();
    for (let count = this.#below(6); count > 0; count--) {
      const slot = slotOf(this.#below(this.#slots));
      const value = this.#below(3) === 0 ? 0 : 1 + this.#below(250);
      state.set(nameOf(address, slot), wordOf(value));
      slots.set(slot, this.#below(6) === 0 ? "unknown" : Uint8Array.of(value));
    }
    return { slots, ...(otherSlots && { otherSlots }) };
  }
}

test("slots of contracts that blocks clear and write are right while entries are evicted", () => {
  let hits = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const run = new ClearingRun(seed);
    run.run();
    hits += run.hits;
  }
  assert.ok(hits > RUNS * BLOCKS, `${hits} hits`);
});

const block = (number: number): BlockId => ({ number: BigInt(number), hash: hashOf(number) });
const keyOf = (address: number, slot: number): StateKey => ({
  ...{ field: "slot", address: addressOf(address), slot: slotOf(slot) },
});

/** Creates a contract that writes slots, then follows blocks whose reads fill a table that takes three blocks to sweep. */
const readAfterCreation = (value: Written<Uint8Array>, isRead: (known: string | undefined) => boolean): void => {
  const values = new ValueStore(8_000_000);
  const written = 400;
  const entered = 10_000;
  const slots = new Map(Array.from({ length: written }, (_, index) => [slotOf(index), value] as const));
  values.begin(block(0));
  const created = new Map([[addressOf(0), { otherSlots: "cleared", slots } as const]]);
  assert.equal(runAll(values.apply({ block: block(1), grade: "checked", packed: packWrites(created) })), true);
  for (let number = 2; number <= 12; number++) {
    assert.equal(runAll(values.apply({ block: block(number), grade: "checked", packed: packWrites(new Map()) })), true);
    runAll(values.prune());
    for (let index = 0; index < entered; index++) {
      values.add(keyOf(1, number * entered + index), block(number), ZERO);
    }
    for (let slot = 0; slot < written; slot++) {
      const known = values.get(keyOf(0, slot), block(number));
      assert.ok(isRead(known), `slot ${slot} at block ${number}: ${known}`);
    }
  }
};

test("a slot that a new contract wrote is not zero after its entry is trimmed", () => {
  readAfterCreation(Uint8Array.of(7), (known) => known === undefined || known === wordOf(7));
});

test("a slot that a new contract wrote with a value that is not listed stays unknown", () => {
  readAfterCreation("unknown", (known) => known === undefined);
});
