import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import type { Address } from "../../../src/ethereum/hex.ts";
import type { StoredCall } from "../../../src/state/calls/storedCall.ts";
import { packRows, RowsReader, type WrittenRows } from "../../../src/state/rows/changedRows.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { readRows } from "../../../src/state/store/packedRows.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import type { AccountWrites } from "../../../src/state/writeSet.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { createRandomBelow } from "../../support/builders/randomValues.ts";
import { runAll } from "../../support/builders/runAll.ts";
import { addressOf } from "../../support/builders/stateModel.ts";

const BYTES = 16 * 1024 * 1024;
const block = (number: number): BlockId => ({ number: BigInt(number), hash: hashOf(number) });
const nothing = (): WrittenRows => ({ codes: new Set(), calls: new Set() });

interface Pack {
  readonly since?: BlockId;
  readonly written?: WrittenRows;
  readonly maxBytes?: number;
  readonly calls?: readonly StoredCall[];
}

const pack = async (values: ValueStore, at: BlockId, options: Pack = {}): Promise<Uint8Array[]> => {
  const { since, written = nothing(), maxBytes = BYTES, calls = [] } = options;
  const blocks: Uint8Array[] = [];
  for await (const rows of packRows({ values, calls: () => calls.values() }, at, { since, written, maxBytes })) {
    blocks.push(rows);
  }
  return blocks;
};

/** Restores rows at a block, the newest first. */
const restore = (blocks: readonly Uint8Array[], at: BlockId | undefined) => {
  const values = new ValueStore(BYTES);
  if (at !== undefined) {
    values.begin(at);
  }
  const reader = new RowsReader(values, at);
  for (const rows of blocks.toReversed()) {
    runAll(reader.read(rows));
  }
  return { values, reader };
};

const KEYS: readonly StateKey[] = Array.from({ length: 12 }, (_, index) => addressOf(index)).flatMap((address) => [
  ...(["balance", "nonce"] as const).map((field) => ({ field, address, slot: undefined })),
  ...Array.from({ length: 6 }, (_, slot) => ({ field: "slot", address, slot: hashOf(slot) }) as const),
]);

/** Adds a block with random writes, after values of nodes at the block before. */
const addBlock = (values: ValueStore, number: number, random: (limit: number) => number): void => {
  for (const key of KEYS.filter(() => random(10) === 0)) {
    values.add(key, block(number - 1), random(1_000).toString(16).padStart(64, "0"));
  }
  const accounts = new Map<Address, AccountWrites>();
  for (const { address } of KEYS.filter(() => random(20) === 0)) {
    const slots = new Map(random(2) === 0 ? [[hashOf(random(6)), Uint8Array.of(number)] as const] : []);
    accounts.set(address, {
      ...{ balance: BigInt(random(1_000)), slots },
      ...(random(5) === 0 && { otherSlots: random(2) === 0 ? "cleared" : "unknown" }),
    });
  }
  assert.ok(runAll(values.apply({ block: block(number), packed: packWrites(accounts), grade: "stated" })));
  runAll(values.prune());
};

test("rows of several saves give the values of the newest one", async () => {
  let restored = 0;
  for (let seed = 0; seed < 30; seed++) {
    const random = createRandomBelow(seed);
    const values = new ValueStore(BYTES);
    const written = nothing();
    const blocks: Uint8Array[] = [];
    values.begin(block(100));
    let since: BlockId | undefined;
    for (let number = 101; number <= 130; number++) {
      addBlock(values, number, random);
      if (random(4) === 0 || number === 130) {
        blocks.push(...(await pack(values, block(number), { ...(since && { since }), written })));
        since = block(number);
      }
    }
    const after = restore(blocks, block(130));
    for (const key of KEYS) {
      const value = after.values.get(key, block(130));
      const known = values.get(key, block(130));
      // A slot that a block cleared is zero, and has no row.
      assert.ok(value === known || (key.field === "slot" && value === undefined), `${seed} ${JSON.stringify(key)}`);
      restored += value === undefined ? 0 : 1;
    }
  }
  assert.ok(restored > 500, `${restored} values`);
});

const KEY: StateKey = { field: "slot", address: addressOf(1), slot: hashOf(1) };
const ONE = "1".padStart(64, "0");
const CODE = Uint8Array.of(0x60, 0x00);
const CALL: StoredCall = {
  ...{ key: '["eth_call",[{}]]', method: "eth_call", node: "one" },
  reads: { keys: [KEY], emptiness: [], addresses: new Set([KEY.address]), blockOpcodes: new Set() },
};

const createKnown = (): ValueStore => {
  const values = new ValueStore(BYTES);
  values.begin(block(7));
  values.add(KEY, block(7), ONE);
  values.add({ field: "code", address: addressOf(3), slot: undefined }, block(7), values.storeCode(CODE));
  return values;
};

test("values, codes and calls are restored, at a block that is not canonical codes alone", async () => {
  const blocks = await pack(createKnown(), block(7), { calls: [CALL] });
  const after = restore(blocks, block(7));
  assert.deepEqual(after.reader.counts, { values: 2, codes: 1, calls: 1 });
  assert.equal(after.values.get(KEY, block(7)), ONE);
  assert.deepEqual(after.reader.calls, [CALL]);
  assert.deepEqual(restore(blocks, undefined).reader.counts, { values: 0, codes: 1, calls: 0 });
});

test("what did not change gets no row again", async () => {
  const values = createKnown();
  const written = nothing();
  await pack(values, block(7), { written, calls: [CALL] });
  assert.deepEqual(await pack(values, block(7), { since: block(7), written, calls: [CALL] }), []);
  const all = await pack(values, block(7), { calls: [CALL] });
  assert.deepEqual(restore(all, block(7)).reader.counts, { values: 2, codes: 1, calls: 1 });
  // Restored values have their rows.
  const after = restore(all, block(7));
  assert.deepEqual(await pack(after.values, block(7), { since: block(7), written: after.reader.written }), []);
});

test("a block of rows with any changed byte is refused before its first row", async () => {
  const [rows = assert.fail()] = await pack(createKnown(), block(7));
  for (let at = 0; at < rows.length; at++) {
    const changed = Uint8Array.from(rows);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    assert.throws(() => readRows(changed).next(), { name: "DamagedRows" }, `byte ${at}`);
  }
  for (const length of [0, 3, rows.length - 1]) {
    assert.throws(() => readRows(rows.subarray(0, length)).next(), { name: "DamagedRows" });
  }
  const { reader } = restore([], block(7));
  assert.throws(() => reader.read(undefined).next(), { name: "DamagedRows" });
});

test("values beyond the limit get a row when they change", async () => {
  const values = new ValueStore(BYTES);
  values.begin(block(7));
  const keys = Array.from({ length: 5_000 }, (_, slot): StateKey => ({ ...KEY, slot: hashOf(slot) }));
  for (const key of keys) {
    values.add(key, block(7), ONE);
  }
  const some = await pack(values, block(7), { maxBytes: 200_000 });
  const { counts } = restore(some, block(7)).reader;
  assert.ok(counts.values > 1_000 && counts.values < 3_000, `${counts.values} values`);
  assert.ok(some.every(({ length }) => length <= 64 * 1024));
  assert.deepEqual(await pack(values, block(7), { since: block(7) }), []);
});
