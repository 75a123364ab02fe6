import assert from "node:assert/strict";
import type { StateKey } from "../../src/state/stateKey.ts";
import type { ValueStore } from "../../src/state/store/valueStore.ts";
import { pick } from "../support/builders/randomValues.ts";
import {
  createModelBlock,
  firstModelBlock,
  MODEL_KEYS,
  type ModelBlock,
  modelValue,
} from "../support/builders/stateModel.ts";

/** A read of the node that has not returned yet. */
interface Fetch {
  readonly key: StateKey;
  readonly block: ModelBlock;
}

const MAX_REORGANISED = 64;

/** Drives the values of a random chain, and compares every value that they return with a simple model. */
export class ModelRun {
  readonly #random: () => number;
  readonly #values: ValueStore;
  readonly #fetches: Fetch[] = [];
  #chain: ModelBlock[] = [firstModelBlock(1_000n)];
  #orphans: ModelBlock[] = [];
  #fork = 0;
  hits = 0;
  reads = 0;

  constructor(random: () => number, values: ValueStore) {
    this.#random = random;
    this.#values = values;
    values.begin(this.#head);
  }

  /** Runs some blocks, with reorganisations, and with reads and fetches between all steps. */
  run(blocks: number): void {
    for (let count = 0; count < blocks; count++) {
      if (this.#random() < 0.1) {
        this.#reorganise();
      }
      this.#extend();
      this.#read(20);
    }
  }

  get #head(): ModelBlock {
    const head = this.#chain.at(-1);
    assert.ok(head);
    return head;
  }

  #extend(): void {
    const block = createModelBlock(this.#random, this.#head, this.#fork);
    const isApplied = this.#step(this.#values.apply(block.writeSet));
    this.#chain.push(block);
    if (isApplied) {
      this.#step(this.#values.prune());
    } else {
      this.#values.begin(block);
    }
  }

  #reorganise(): void {
    const depth = Math.min(this.#chain.length - 1, Math.ceil(this.#random() ** 3 * MAX_REORGANISED));
    this.#orphans = this.#chain.splice(this.#chain.length - depth);
    this.#fork++;
    if (this.#values.isReadable(this.#head)) {
      this.#step(this.#values.undoTo(this.#head.number));
    } else {
      this.#values.begin(this.#head);
    }
  }

  /** Runs a change to its end. Clients read between its steps. */
  #step<T>(steps: Generator<unknown, T>): T {
    for (let next = steps.next(); ; next = steps.next()) {
      if (next.done) {
        return next.value;
      }
      this.#read(this.#random() < 0.3 ? 1 : 0);
    }
  }

  #read(count: number): void {
    for (let index = 0; index < count; index++) {
      this.#readOne();
      if (this.#random() < 0.5) {
        this.#returnFetch();
      }
    }
  }

  #readOne(): void {
    const key = pick(this.#random, MODEL_KEYS);
    const depth = Math.floor(this.#random() ** 4 * Math.min(this.#chain.length, this.#values.maxReadable + 10));
    const isOrphan = this.#orphans.length > 0 && this.#random() < 0.1;
    const block = isOrphan ? pick(this.#random, this.#orphans) : this.#chain.at(-1 - depth);
    assert.ok(block);
    const value = this.#values.get(key, block);
    this.reads++;
    if (value === undefined) {
      this.#fetches.push({ key, block });
      return;
    }
    this.hits++;
    assert.ok(!isOrphan, `an orphan's value: ${block.hash}`);
    assert.equal(value, modelValue(block, key), `${JSON.stringify(key)} at ${block.number}`);
    if (key.field === "code") {
      assert.deepEqual(this.#values.code(value), block.codes.get(value));
    }
  }

  /** The node answers one of the fetches, not in their order. */
  #returnFetch(): void {
    const [fetch] = this.#fetches.splice(Math.floor(this.#random() * this.#fetches.length), 1);
    if (fetch === undefined) {
      return;
    }
    const { key, block } = fetch;
    const value = modelValue(block, key);
    const code = block.codes.get(value);
    if (code !== undefined) {
      this.#values.storeCode(code);
    }
    this.#values.add(key, block, value);
  }
}
