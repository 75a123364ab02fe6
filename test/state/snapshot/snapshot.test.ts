import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import type { BlockId, HeaderFields } from "../../../src/core/heads.ts";
import type { Address } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import type { StoredDefaults } from "../../../src/state/calls/nodeDefaults.ts";
import type { AnswerSource, StoredAnswer } from "../../../src/state/calls/storedAnswers.ts";
import {
  type PackedParts,
  packSnapshot,
  type SnapshotChain,
  type SnapshotParts,
} from "../../../src/state/snapshot/packSnapshot.ts";
import { newestCanonical, restoreSnapshot } from "../../../src/state/snapshot/restoreSnapshot.ts";
import { CHUNK_BYTES } from "../../../src/state/snapshot/snapshotFormat.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import type { AccountWrites } from "../../../src/state/writeSet.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { createRandomBelow } from "../../support/builders/randomValues.ts";
import { runAll } from "../../support/builders/runAll.ts";
import { addressOf } from "../../support/builders/stateModel.ts";
import { createCost } from "../costRig.ts";

const BYTES = 8 * 1024 * 1024;
const CHAIN: SnapshotChain = {
  chainId: "1",
  genesis: hashOf(0),
  rules: "rules",
  nodes: [
    { name: "one", address: "a" },
    { name: "two", address: "b" },
  ],
};
const block = (number: number, fork = 0): BlockId => ({ number: BigInt(number), hash: hashOf(number, fork) });

const createParts = () => {
  const values = new ValueStore(BYTES);
  const { cost } = createCost({ used: values.used });
  return { values, cost } satisfies SnapshotParts;
};

/** Creates an answer that was learned at a block, and reads a value of each kind. */
const answerAt = (number: number, isValid: boolean, node = "two"): StoredAnswer => {
  const address = addressOf(number);
  const keys: readonly StateKey[] = [
    { field: "code", address, slot: undefined },
    { field: "slot", address, slot: hashOf(3) },
  ];
  const reads = {
    keys,
    emptiness: [address],
    addresses: new Set([address]),
    blockOpcodes: new Set(["GASLIMIT"] as const),
  };
  const header = { feeRecipient: addressOf(9), gasLimit: "0x5" };
  const body = new TextEncoder().encode('"0x12"');
  const answer = { body, block: block(number), reads, header, node, isRepeatable: true };
  return { key: `["eth_call",[{"to":"${address}"}]]`, method: "eth_call", answer, isValid };
};

const DEFAULTS: StoredDefaults = {
  node: "two",
  defaults: { gas: 50n, hasZeroSender: true, fromHeader: new Set(["NUMBER", "BASEFEE"]) },
};
const sourceOf = (answers: readonly (StoredAnswer | undefined)[]): AnswerSource => ({
  defaults: [DEFAULTS],
  answersAt: () => answers.values(),
});

const HEADERS: readonly HeaderFields[] = [
  { number: "0x6", hash: hashOf(6) },
  { number: "0x7", hash: hashOf(7) },
];

const pack = async (parts: SnapshotParts & Partial<PackedParts>, maxBytes = BYTES): Promise<Uint8Array[]> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of packSnapshot({ answers: undefined, headers: [], ...parts }, CHAIN, {
    maxBytes,
    isCurrent: () => true,
  })) {
    chunks.push(chunk);
  }
  return chunks;
};

const chunksOf = async function* (chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  yield* chunks;
};

interface RestoreRun {
  readonly chain?: SnapshotChain;
  readonly isCanonical?: (block: BlockId) => boolean;
}

const restore = async (chunks: readonly Uint8Array[], { chain = CHAIN, isCanonical = () => true }: RestoreRun = {}) => {
  const parts = createParts();
  const { values } = parts;
  const answers: StoredAnswer[] = [];
  const defaults: StoredDefaults[] = [];
  const headers: unknown[] = [];
  const restored = await restoreSnapshot(chunksOf(chunks), chain, parts, {
    addHeaders: (added) => headers.push(...added),
    answers: { addAnswer: (stored) => answers.push(stored), addDefaults: (stored) => defaults.push(stored) },
    findBlock: async (header) => newestCanonical(header, isCanonical),
    begin: (found) => {
      values.begin(found);
      return true;
    },
    drop: () => values.clear(),
    isCurrent: () => true,
  });
  return { ...parts, restored, answers, defaults, headers };
};

const KEYS: readonly StateKey[] = Array.from({ length: 12 }, (_, index) => addressOf(index)).flatMap((address) => [
  ...(["balance", "nonce"] as const).map((field) => ({ field, address, slot: undefined })),
  ...Array.from({ length: 6 }, (_, slot) => ({ field: "slot", address, slot: hashOf(slot) }) as const),
]);

/** Fills a store with values of nodes and of random blocks. Returns its newest block. */
const fillRandomly = (values: ValueStore, seed: number): BlockId => {
  const random = createRandomBelow(seed);
  const valueAt = (): string => random(1_000).toString(16).padStart(64, "0");
  values.begin(block(100));
  for (let number = 101; number <= 130; number++) {
    for (const key of KEYS.filter(() => random(10) === 0)) {
      values.add(key, block(number - 1), valueAt());
    }
    const accounts = new Map<Address, AccountWrites>();
    for (const address of KEYS.filter(() => random(20) === 0).map((key) => key.address)) {
      const slots = new Map(random(2) === 0 ? [[hashOf(random(6)), Uint8Array.of(number)] as const] : []);
      accounts.set(address, {
        ...{ balance: BigInt(random(1_000)), slots },
        ...(random(5) === 0 && { otherSlots: random(2) === 0 ? "cleared" : "unknown" }),
      });
    }
    assert.ok(
      runAll(
        values.apply({
          block: block(number),
          grade: "checked",
          packed: packWrites(accounts),
          ...(random(2) === 0 && { node: "one" }),
        }),
      ),
    );
    runAll(values.prune());
  }
  return block(130);
};

test("values that are restored are those of the block, or of its newest canonical ancestor", async () => {
  let restoredAtAncestor = 0;
  for (let seed = 0; seed < 20; seed++) {
    const { values, ...parts } = createParts();
    const newest = fillRandomly(values, seed);
    const chunks = await pack({ ...parts, values });
    const whole = await restore(chunks);
    assert.deepEqual(whole.restored?.block, newest);
    for (const key of KEYS) {
      const known = values.get(key, newest);
      const restored = whole.values.getUntrusted(key, newest);
      // A slot that a block cleared is zero, and not listed.
      assert.ok(restored === known || (key.field === "slot" && restored === undefined), JSON.stringify(key));
    }
    const ancestor = block(120);
    const older = await restore(chunks, { isCanonical: ({ number }) => number <= ancestor.number });
    assert.deepEqual(older.restored?.block, ancestor);
    for (const key of KEYS) {
      const restored = older.values.getUntrusted(key, ancestor);
      restoredAtAncestor += restored === undefined ? 0 : 1;
      assert.ok(restored === undefined || restored === values.get(key, ancestor), JSON.stringify(key));
    }
  }
  assert.ok(restoredAtAncestor > 100);
});

const BALANCE: StateKey = { field: "balance", address: addressOf(1), slot: undefined };
const ONE = "1".padStart(64, "0");

/** A snapshot with values, a code, and costs. */
const createKnown = async () => {
  const parts = createParts();
  const { values, cost } = parts;
  values.begin(block(7));
  values.add(BALANCE, block(7), ONE);
  values.add({ ...BALANCE, address: addressOf(2) }, block(7), ONE);
  const code = Uint8Array.of(0x60, 0x00);
  values.addCode({ field: "code", address: addressOf(3), slot: undefined }, block(7), code);
  cost.onRead({ method: "eth_getBalance", key: BALANCE, block: 6n, isHit: false });
  cost.onRead({ method: "eth_getBalance", key: BALANCE, block: 7n, isHit: false });
  return { ...parts, code, chunks: await pack({ ...parts, answers: sourceOf([answerAt(7, true)]), headers: HEADERS }) };
};

test("codes, used keys and costs are restored with the values", async () => {
  const { chunks, code, cost } = await createKnown();
  const after = await restore(chunks);
  assert.deepEqual(after.restored, { block: block(7), values: 3, codes: 1, answers: 1 });
  assert.deepEqual(after.headers, HEADERS);
  assert.deepEqual(after.values.code(keccak256Hex(code).slice(2)), code);
  assert.equal(after.values.get(BALANCE, block(7)), undefined, "it waits for a check");
  assert.equal(after.values.getUntrusted(BALANCE, block(7)), ONE);
  assert.deepEqual(after.cost.recent, cost.recent);
  assert.ok(after.cost.recent.repeatedUnits > 0);
  assert.deepEqual(after.values.used.mostUsed(5), [BALANCE]);
});

test("answers to calls are restored at the block of the snapshot, and at an ancestor those that are not newer", async () => {
  const { values, ...parts } = createParts();
  fillRandomly(values, 3);
  const known = [answerAt(110, true), undefined, answerAt(125, false), answerAt(130, true)];
  const orphan = { ...answerAt(120, true), answer: { ...answerAt(120, true).answer, block: block(120, 1) } };
  const stranger = answerAt(119, true, "three");
  const chunks = await pack({ ...parts, values, answers: sourceOf([...known, orphan, stranger]) });
  const whole = await restore(chunks);
  assert.deepEqual(
    whole.answers,
    known.filter((answer) => answer !== undefined),
  );
  assert.deepEqual(whole.defaults, [DEFAULTS]);
  const older = await restore(chunks, { isCanonical: ({ number }) => number <= 120n });
  assert.deepEqual(older.answers, known.slice(0, 1));
  const gone = await restore(chunks, { isCanonical: () => false });
  assert.deepEqual([gone.answers, gone.defaults], [[], []]);
});

test("nothing but codes is restored if any node is gone or has another URL: it may have given any value", async () => {
  const { chunks } = await createKnown();
  const nodes = CHAIN.nodes.map((node) => (node.name === "one" ? { ...node, address: "other" } : node));
  for (const chain of [
    { ...CHAIN, nodes },
    { ...CHAIN, nodes: CHAIN.nodes.slice(1) },
  ]) {
    const after = await restore(chunks, { chain });
    assert.deepEqual([after.restored, after.answers], [{ block: undefined, values: 0, codes: 1, answers: 0 }, []]);
    assert.equal(after.values.head, undefined);
  }
});

test("answers have the room that values leave, and none is stored while they wait for a check", async () => {
  const { values, ...parts } = createParts();
  fillRandomly(values, 4);
  const answers = sourceOf(Array.from({ length: 1_000 }, () => answerAt(120, true)));
  const valuesAlone = (await pack({ ...parts, values })).reduce((sum, { length }) => sum + length, 0);
  assert.equal((await restore(await pack({ ...parts, values, answers }, valuesAlone / 2))).restored?.answers, 0);
  values.isTrusted = false;
  assert.equal((await restore(await pack({ ...parts, values, answers }))).restored?.answers, 0);
});

test("values are added below those of later blocks, until values of a node end", async () => {
  const { chunks } = await createKnown();
  const added = async (isCurrent: () => boolean) => {
    const parts = createParts();
    parts.values.begin(block(6));
    const TWO = "2".padStart(64, "0");
    const written = { ...BALANCE, address: addressOf(2) };
    runAll(parts.values.apply({ block: block(7), grade: "checked", packed: packWrites(new Map()) }));
    runAll(
      parts.values.apply({
        block: block(8),
        grade: "checked",
        packed: packWrites(new Map([[written.address, { balance: 2n, slots: new Map() }]])),
      }),
    );
    const restored = restoreSnapshot(chunksOf(chunks), CHAIN, parts, {
      answers: undefined,
      addHeaders: () => undefined,
      findBlock: async (header) => newestCanonical(header, () => true),
      begin: (found) => parts.values.isApplied(found),
      drop: () => assert.fail("it is not damaged"),
      isCurrent,
    });
    return { ...parts, restored, written, TWO };
  };
  const { values, restored, written, TWO } = await added(() => true);
  assert.deepEqual((await restored)?.block, block(7));
  assert.deepEqual([values.getUntrusted(BALANCE, block(7)), values.getUntrusted(BALANCE, block(8))], [ONE, ONE]);
  assert.deepEqual([values.getUntrusted(written, block(7)), values.getUntrusted(written, block(8))], [ONE, TWO]);
  const ended = await added(() => false);
  await assert.rejects(ended.restored, { name: "SnapshotEnded" });
  assert.equal(ended.values.getUntrusted(written, block(8)), TWO);
});

test("if no block of a snapshot is canonical, codes stay, and values end", async () => {
  const { chunks } = await createKnown();
  const after = await restore(chunks, { isCanonical: () => false });
  assert.deepEqual(after.restored, { block: undefined, values: 0, codes: 1, answers: 0 });
  assert.equal(after.values.head, undefined);
});

test("values that wait for a check are not in the snapshot, and those that became wrong end it", async () => {
  const { values, ...parts } = createParts();
  fillRandomly(values, 2);
  values.isTrusted = false;
  assert.equal((await restore(await pack({ ...parts, values }))).restored?.values, 0);
  values.isTrusted = true;
  let isCurrent = true;
  const steps = packSnapshot({ ...parts, values, answers: undefined, headers: [] }, CHAIN, {
    maxBytes: BYTES,
    isCurrent: () => isCurrent,
  });
  await steps.next();
  isCurrent = false;
  await assert.rejects(steps.next(), { name: "SnapshotEnded" });
});

for (const field of ["chainId", "genesis", "rules"] as const) {
  test(`a snapshot of another ${field} is foreign`, async () => {
    const { chunks } = await createKnown();
    const chain = { ...CHAIN, [field]: field === "genesis" ? hashOf(9) : "other" };
    await assert.rejects(restore(chunks, { chain }), { name: "ForeignSnapshot" });
  });
}

test("a snapshot with any changed byte, or without a chunk, is damaged", async () => {
  const { chunks } = await createKnown();
  for (const [index, chunk] of chunks.entries()) {
    const without = chunks.filter((_, each) => each !== index);
    await assert.rejects(restore(without), { name: "DamagedSnapshot" }, `without chunk ${index}`);
    for (let at = 0; at < chunk.length; at += 7) {
      const changed = Uint8Array.from(chunk);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      await assert.rejects(restore(chunks.with(index, changed)), { name: "DamagedSnapshot" }, `byte ${at} of ${index}`);
    }
  }
  await assert.rejects(restore([...chunks, chunks[0] ?? assert.fail()]), { name: "DamagedSnapshot" });
  assert.equal((await restore([])).restored, undefined);
});

test("another format, and a content that is cut with its checksum, are damaged", async () => {
  const { chunks } = await createKnown();
  const signed = (chunk: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(chunk);
    bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0);
    return bytes;
  };
  for (const [index, chunk] of chunks.entries()) {
    const other = Uint8Array.from(chunk);
    other[4] = 99;
    await assert.rejects(restore(chunks.with(index, signed(other))), { name: "DamagedSnapshot" });
    // The end has no content.
    if (index < chunks.length - 1) {
      const cut = signed(chunk.subarray(0, -1));
      await assert.rejects(restore(chunks.with(index, cut)), { name: "DamagedSnapshot" });
    }
  }
});

test("a snapshot has chunks of a limited size, and ends at its limit", async () => {
  const { values, ...parts } = createParts();
  values.begin(block(7));
  for (let slot = 0; slot < 20_000; slot++) {
    values.add({ field: "slot", address: addressOf(1), slot: hashOf(slot) }, block(7), ONE);
  }
  const all = await pack({ ...parts, values });
  assert.ok(all.length > 6 && all.every(({ length }) => length <= CHUNK_BYTES));
  assert.equal((await restore(all)).restored?.values, 20_000);
  const some = (await restore(await pack({ ...parts, values }, 2 * CHUNK_BYTES))).restored?.values ?? 0;
  assert.ok(some > 3_000 && some < 10_000, `${some} values`);
});
