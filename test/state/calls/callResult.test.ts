import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId, HeaderFields } from "../../../src/core/heads.ts";
import type { EnvironmentOpcode, ReadSet } from "../../../src/core/readSet.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { type CallResult, callReads, gradeAt, isValidAt } from "../../../src/state/calls/callResult.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import type { AccountWrites, WriteSet } from "../../../src/state/writeSet.ts";

const address = (index: number): Address => `0x${(index + 1).toString(16).padStart(40, "0")}`;
const hash = (index: number): Hash => `0x${(index + 1).toString(16).padStart(64, "0")}`;
const block = (number: number): BlockId => ({ number: BigInt(number), hash: hash(number) });
const [READ, OTHER, MINER, NEXT_MINER] = [address(0), address(1), address(2), address(3)];
const value = (digits: string): string => digits.padStart(64, "0");

const MAX_BYTES = 1_000_000;
const NO_SLOTS = new Map();

interface Written {
  readonly at: Address;
  readonly writes: Partial<AccountWrites>;
}

/** Applies one block with these writes. */
const apply = (values: ValueStore, number: number, written: readonly Written[]): void => {
  const accounts = new Map(written.map(({ at, writes }) => [at, { slots: NO_SLOTS, ...writes }]));
  const writeSet: WriteSet = { block: block(number), grade: "checked", packed: packWrites(accounts) };
  for (const _ of values.apply(writeSet)) {
    // All steps.
  }
};

const reads = (read: Partial<ReadSet["accounts"][number]>, environment: readonly EnvironmentOpcode[] = []) =>
  callReads({
    accounts: [{ address: READ, fields: [], slots: [], ...read }],
    blockHashes: [],
    environment,
  });

const answerOf = (read: ReturnType<typeof reads>, fields: Partial<CallResult> = {}): CallResult => ({
  body: new Uint8Array(0),
  block: block(1),
  reads: read,
  header: { feeRecipient: MINER, gasLimit: "0x5" },
  generation: 0,
  node: "node",
  isRepeatable: true,
  grade: "checked",
  ...fields,
});

const headers = (fields: HeaderFields = {}) => ({ header: () => ({ miner: MINER, gasLimit: "0x5", ...fields }) });

/** Whether an answer is that of block 2, which made these writes. */
const isValidAfter = (
  read: ReturnType<typeof reads>,
  written: readonly Written[],
  known: readonly (readonly [StateKey["field"], string])[] = [],
) => {
  const values = new ValueStore(MAX_BYTES);
  values.begin(block(1));
  for (const [field, digits] of known) {
    values.add({ field, address: READ, slot: undefined }, block(1), value(digits));
  }
  apply(values, 2, written);
  return isValidAt(answerOf(read), block(2), values, headers());
};

const SLOT_WRITE = new Map([[hash(5), Uint8Array.of(1)]]);

test("a write of a read key ends an answer, and no other write does", () => {
  const slotRead = reads({ slots: [hash(5)], fields: ["code"] });
  for (const [written, expected] of [
    [{ at: READ, writes: { slots: SLOT_WRITE } }, false],
    [{ at: READ, writes: { code: "unknown" } }, false],
    [{ at: READ, writes: { otherSlots: "unknown" } }, false],
    [{ at: READ, writes: { otherSlots: "cleared" } }, false],
    [{ at: READ, writes: { balance: 5n, nonce: 6n } }, true],
    [{ at: READ, writes: { slots: new Map([[hash(6), Uint8Array.of(1)]]) } }, true],
    [{ at: OTHER, writes: { slots: SLOT_WRITE } }, true],
  ] as const) {
    assert.equal(isValidAfter(slotRead, [written]), expected, JSON.stringify(Object.keys(written.writes)));
  }
});

test("a value that was fetched after the answer does not end it, a write between does", () => {
  const values = new ValueStore(MAX_BYTES);
  values.begin(block(1));
  const read = reads({ fields: ["balance"] });
  const key: StateKey = { field: "balance", address: READ, slot: undefined };
  apply(values, 2, []);
  values.add(key, block(2), value("7"));
  assert.equal(isValidAt(answerOf(read), block(2), values, headers()), true);
  apply(values, 3, [{ at: READ, writes: { balance: "unknown" } }]);
  values.add(key, block(3), value("8"));
  apply(values, 4, []);
  assert.equal(isValidAt(answerOf(read), block(4), values, headers()), false);
  assert.equal(isValidAt(answerOf(read, { block: block(3) }), block(4), values, headers()), true);
});

test("emptiness ends only if it may have changed", () => {
  const emptiness = reads({ fields: ["emptiness"] });
  const [zero, five] = [{ balance: 0n }, { balance: 5n }];
  const empty = [["balance", "0"] as const, ["nonce", "0"] as const, ["code", "0"] as const];
  assert.equal(isValidAfter(emptiness, [{ at: READ, writes: five }]), false, "nothing is known");
  assert.equal(isValidAfter(emptiness, [{ at: READ, writes: five }], empty), false, "it was empty");
  assert.equal(isValidAfter(emptiness, [{ at: READ, writes: five }], [["balance", "1"]]), true);
  assert.equal(isValidAfter(emptiness, [{ at: READ, writes: zero }], [["nonce", "1"]]), true);
  assert.equal(isValidAfter(emptiness, [{ at: READ, writes: zero }], [["balance", "1"]]), false);
  assert.equal(isValidAfter(emptiness, [{ at: READ, writes: { balance: "unknown" } }], [["code", "1"]]), true);
});

test("a creation at an address reads its nonce and its code", () => {
  const creation = reads({ fields: ["storage"] });
  assert.equal(isValidAfter(creation, [{ at: READ, writes: { nonce: 1n } }]), false);
  assert.equal(isValidAfter(creation, [{ at: READ, writes: { code: Uint8Array.of(1) } }]), false);
});

test("another fee recipient ends an answer that reads one of the two (EIP-3651)", () => {
  const values = new ValueStore(MAX_BYTES);
  values.begin(block(1));
  apply(values, 2, []);
  const changed = headers({ miner: NEXT_MINER });
  const at = (read: Address) => isValidAt(answerOf(reads({ address: read })), block(2), values, changed);
  assert.equal(at(MINER), false);
  assert.equal(at(NEXT_MINER), false);
  assert.equal(at(OTHER), true);
  assert.equal(isValidAt(answerOf(reads({ address: MINER })), block(2), values, headers()), true);
});

test("an opcode of the block ends an answer with the block, except an equal gas limit", () => {
  const values = new ValueStore(MAX_BYTES);
  values.begin(block(1));
  apply(values, 2, []);
  const after = (opcodes: readonly EnvironmentOpcode[], fields: HeaderFields = {}) =>
    isValidAt(answerOf(reads({}, opcodes)), block(2), values, headers(fields));
  for (const opcode of [
    "NUMBER",
    "TIMESTAMP",
    "COINBASE",
    "PREVRANDAO",
    "BASEFEE",
    "BLOBBASEFEE",
    "SLOTNUM",
  ] as const) {
    assert.equal(after([opcode]), false, opcode);
  }
  assert.equal(after(["BLOCKHASH"]), false);
  assert.equal(after(["GASLIMIT", "NUMBER"]), false);
  assert.equal(after(["GASLIMIT"]), true);
  assert.equal(after(["GASLIMIT"], { gasLimit: "0x6" }), false);
  assert.equal(after(["GAS", "ORIGIN", "CHAINID", "GASPRICE"]), true);
});

test("an answer of a block that was undone ends, and one of a block above is of no use below", () => {
  const values = new ValueStore(MAX_BYTES);
  values.begin(block(1));
  apply(values, 2, []);
  const read = reads({ fields: ["balance"] });
  assert.equal(isValidAt(answerOf(read, { block: block(2) }), block(1), values, headers()), false);
  for (const _ of values.undoTo(1n)) {
    // All steps.
  }
  const other: WriteSet = { block: { number: 2n, hash: hash(50) }, grade: "checked", packed: packWrites(new Map()) };
  for (const _ of values.apply(other)) {
    // All steps.
  }
  assert.equal(isValidAt(answerOf(read, { block: block(2) }), other.block, values, headers()), false);
  assert.equal(isValidAt(answerOf(read), other.block, values, headers()), true);
  assert.equal(isValidAt(answerOf(read), block(2), values, headers()), false);
});

test("an answer is not served at a later block before its source nodes passed a check", () => {
  const values = new ValueStore(MAX_BYTES);
  values.begin(block(1));
  apply(values, 2, []);
  values.isChecked = false;
  const answer = answerOf(reads({ fields: ["balance"] }));
  assert.equal(isValidAt(answer, block(2), values, headers()), false);
  assert.equal(isValidAt(answer, block(1), values, headers()), true);
});

test("an answer stays proven over proven write sets, until one of them writes a field of an account whose emptiness counts", () => {
  const cases: readonly (readonly [isProven: boolean, writes: Partial<AccountWrites>, isListed: boolean])[] = [
    [true, {}, true],
    [false, {}, false],
    [false, { nonce: 5n }, true],
  ];
  for (const [expected, writes, isListed] of cases) {
    const values = new ValueStore(1_000_000);
    values.begin(block(1));
    const packed = packWrites(new Map([[READ, { slots: NO_SLOTS, ...writes }]]));
    for (const _ of values.apply({ block: block(2), packed, grade: isListed ? "proven" : "stated" })) {
      // All steps.
    }
    const answer = answerOf(reads({ fields: ["emptiness"] }), { grade: "proven" });
    assert.equal(gradeAt(answer, block(1), values), "proven");
    assert.equal(
      gradeAt(answer, block(2), values) === "proven",
      expected,
      JSON.stringify([isListed, Object.keys(writes)]),
    );
    assert.equal(gradeAt({ ...answer, grade: "checked" }, block(2), values), expected ? "checked" : "stated");
    assert.equal(gradeAt(answer, { ...block(2), hash: block(9).hash }, values), "stated", "another branch");
  }
});
