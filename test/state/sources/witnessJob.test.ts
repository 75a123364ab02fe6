import assert from "node:assert/strict";
import { test } from "node:test";
import { type Address, type Hash, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import type { WriteSetJobOutput } from "../../../src/state/sources/writeSetThread.ts";
import { unpackWrites } from "../../../src/state/store/packedWrites.ts";
import type { AccountWrites, BlockWrites } from "../../../src/state/writeSet.ts";
import { createChoices } from "../../fuzz/engine/random.ts";
import { createTarget } from "../../fuzz/targets/witness.ts";
import type { ProvenStateAccount } from "../../support/builders/provenState.ts";
import {
  addressAt,
  codeHashAt,
  createWitnessCase,
  fullClaim,
  headerWith,
  NO_WORLD_ACCOUNT,
  proveWith,
  slot,
  type World,
  witnessJobOf,
  wrongAfter,
} from "../../support/state/witnessCase.ts";
import { LIES, withLie } from "../../support/state/witnessLies.ts";

const [PAYER, CONTRACT, ENDING, SYSTEM, UNTOUCHED, NEW] = [1, 2, 3, 4, 5, 6].map(addressAt) as [
  Address,
  Address,
  Address,
  Address,
  Address,
  Address,
];

const account = (fields: Partial<ProvenStateAccount>): ProvenStateAccount => ({ ...NO_WORLD_ACCOUNT, ...fields });
const slotsOf = (values: Readonly<Record<number, bigint>>): ReadonlyMap<Hash, bigint> =>
  new Map(Object.entries(values).map(([key, value]) => [slot(Number(key)), value]));

const BEFORE: World = new Map([
  [PAYER, account({ nonce: 4n, balance: 10n ** 18n })],
  [CONTRACT, account({ nonce: 1n, codeHash: codeHashAt(1), slots: slotsOf({ 0: 5n, 1: 6n, 2: 7n }) })],
  [ENDING, account({ balance: 3n, slots: slotsOf({ 0: 1n, 3: 2n }) })],
  [SYSTEM, account({ nonce: 1n, codeHash: codeHashAt(2), slots: slotsOf({ 8: 9n, 9: 9n }) })],
  [UNTOUCHED, account({ balance: 77n })],
  ...Array.from({ length: 40 }, (_, at) => [addressAt(100 + at), account({ balance: 1n })] as const),
]);

const AFTER: World = new Map([
  ...[...BEFORE].filter(([address]) => address !== ENDING),
  [PAYER, account({ nonce: 5n, balance: 9n ** 18n })],
  [CONTRACT, account({ nonce: 1n, codeHash: codeHashAt(1), slots: slotsOf({ 0: 500n, 2: 7n, 4: 1n }) })],
  [SYSTEM, account({ nonce: 1n, codeHash: codeHashAt(2), slots: slotsOf({ 8: 10n, 9: 9n }) })],
  [NEW, account({ nonce: 1n, codeHash: codeHashAt(3) })],
]);

const BLOCK = await createWitnessCase(BEFORE, AFTER);
const CLAIM = fullClaim(BLOCK);
const proofOf = (address: Address) => BLOCK.afterProofs.proofOf(address, []);

const proveClaim = (claim: BlockWrites, nodes: readonly unknown[] = BLOCK.nodes): Promise<WriteSetJobOutput> =>
  proveWith(witnessJobOf(BLOCK, claim, nodes), proofOf);

const writesOf = (output: WriteSetJobOutput): BlockWrites => {
  assert.equal(output.kind, "proven", JSON.stringify(output));
  return unpackWrites(output.kind === "proven" ? output.packed : new Uint8Array(0));
};

const withWrites = (address: Address, writes: Partial<AccountWrites>): BlockWrites =>
  new Map([...CLAIM, [address, { ...(CLAIM.get(address) ?? { slots: new Map() }), ...writes }]]);

test("the writes of a block are proven, and are all that it changed", async () => {
  const writes = writesOf(await proveClaim(CLAIM));
  assert.deepEqual(wrongAfter(BLOCK, writes), []);
  assert.deepEqual([...writes.keys()].sort(), [...CLAIM.keys()].sort());
  assert.equal(writes.get(CONTRACT)?.otherSlots, undefined);
  assert.equal(writes.get(CONTRACT)?.slots.size, 3);
});

test("the slots of an account that ended are zero, although nobody claimed that", async () => {
  const writes = writesOf(await proveClaim(withWrites(ENDING, { slots: new Map() })));
  assert.equal(writes.get(ENDING)?.otherSlots, "cleared");
  const added = writesOf(await proveClaim(withWrites(ENDING, { slots: new Map([[slot(7), Uint8Array.of(9)]]) })));
  assert.deepEqual(wrongAfter(BLOCK, added), []);
  assert.equal(added.get(ENDING)?.slots.size, 0);
});

test("each lie about each account is refused, or changes nothing that is proven", async () => {
  const choices = createChoices(7, 0);
  const refused = new Set<string>();
  for (const name of Object.keys(LIES)) {
    for (const address of [PAYER, CONTRACT, ENDING, NEW, addressAt(999)]) {
      const output = await proveClaim(withLie(CLAIM, name, address, choices));
      if (output.kind === "proven") {
        assert.deepEqual(wrongAfter(BLOCK, unpackWrites(output.packed)), [], `${name} ${address}`);
      } else {
        refused.add(name);
      }
    }
  }
  const harmless = ["slot unknown", "slots unknown", "balance unknown", "code unknown"];
  assert.deepEqual(
    Object.keys(LIES).filter((name) => !refused.has(name)),
    harmless,
  );
});

test("what is open takes its leaf from a proof, and its slots stay unknown", async () => {
  const claim = withWrites(SYSTEM, { otherSlots: "unknown", slots: new Map([[slot(8), Uint8Array.of(99)]]) });
  const output = runWriteSetJob(witnessJobOf(BLOCK, claim, BLOCK.nodes));
  assert.deepEqual(output.kind === "open" && output.addresses, [SYSTEM]);
  const writes = writesOf(await proveClaim(claim));
  assert.deepEqual(writes.get(SYSTEM), { otherSlots: "unknown", slots: new Map() });
  assert.deepEqual(wrongAfter(BLOCK, writes), []);
});

test("the slots of an open account are proven if they give its storage root, or if that is the same", async () => {
  const claimed = writesOf(await proveClaim(withWrites(SYSTEM, { otherSlots: "unknown" })));
  assert.equal(claimed.get(SYSTEM)?.otherSlots, undefined);
  assert.equal(claimed.get(SYSTEM)?.slots.size, 1);
  const same = writesOf(await proveClaim(withWrites(UNTOUCHED, { otherSlots: "unknown", balance: "unknown" })));
  assert.equal(same.get(UNTOUCHED), undefined);
  const ended = writesOf(
    await proveClaim(
      withWrites(ENDING, { balance: "unknown", nonce: "unknown", code: "unknown", otherSlots: "unknown" }),
    ),
  );
  assert.equal(ended.get(ENDING)?.otherSlots, "cleared");
  assert.equal(ended.get(ENDING)?.balance, 0n);
});

test("an open account that the witness does not have is asked of nobody, and has not changed", async () => {
  const claim = new Map([...CLAIM, [addressAt(120), { balance: "unknown", slots: new Map() } as const]]);
  assert.equal(runWriteSetJob(witnessJobOf(BLOCK, claim, BLOCK.nodes)).kind, "open");
  const writes = writesOf(runWriteSetJob(witnessJobOf(BLOCK, claim, BLOCK.pathNodes)));
  assert.equal(writes.has(addressAt(120)), false);
});

test("a code is known if its hash is proven, and a code with another hash is refused", async () => {
  const code = Uint8Array.of(0x60, 3);
  const own = keccak256Hex(code);
  const writes = writesOf(await proveClaim(withWrites(NEW, { code, codeHash: own })));
  assert.deepEqual(writes.get(NEW)?.code, Buffer.from(code));
  assert.equal((await proveClaim(withWrites(NEW, { code: Uint8Array.of(1), codeHash: own }))).kind, "unproven");
  const unknown = writesOf(await proveClaim(withWrites(NEW, { code: "unknown" })));
  assert.equal(unknown.get(NEW)?.codeHash, own);
  assert.equal(unknown.get(PAYER)?.codeHash, undefined);
  const other = { code: Uint8Array.of(1), codeHash: keccak256Hex(Uint8Array.of(1)) };
  const open = writesOf(await proveClaim(withWrites(NEW, { balance: "unknown", ...other })));
  assert.equal(open.get(NEW)?.code, "unknown", "the leaf has another hash");
  assert.notEqual(own, EMPTY_CODE_HASH);
});

test("a missing node proves nothing", async () => {
  const reasons = new Set<string>();
  for (const index of BLOCK.pathNodes.keys()) {
    const output = await proveClaim(CLAIM, BLOCK.pathNodes.toSpliced(index, 1));
    if (output.kind === "unproven") {
      reasons.add(output.reason);
    } else {
      assert.deepEqual(wrongAfter(BLOCK, writesOf(output)), []);
    }
  }
  assert.deepEqual([...reasons], ["missing"]);
  assert.deepEqual(await proveClaim(CLAIM, []), { kind: "unproven", reason: "missing" });
});

test("headers must have their own hashes and be linked, and a witness and a proof must have their form", async () => {
  const job = witnessJobOf(BLOCK, CLAIM, BLOCK.nodes);
  const { header, parent } = BLOCK;
  const other = headerWith(BLOCK.afterProofs.stateRoot, 8n, ZERO_HASH);
  const open = withWrites(SYSTEM, { otherSlots: "unknown" });
  const malformed: readonly WriteSetJobOutput[] = [
    runWriteSetJob({ ...job, header: { ...header, stateRoot: parent.stateRoot } }),
    runWriteSetJob({ ...job, header: { ...header, stateRoot: parent.stateRoot, madeUp: "0x1" } }),
    runWriteSetJob({ ...job, parent: { ...parent, stateRoot: header.stateRoot } }),
    runWriteSetJob({ ...job, parent: { ...parent, stateRoot: header.stateRoot, madeUp: "0x1" } }),
    runWriteSetJob({ ...job, parent: header }),
    runWriteSetJob({ ...job, header: other, block: { number: 8n, hash: other.hash } }),
    runWriteSetJob({ ...job, block: { ...job.block, number: 9n } }),
    runWriteSetJob({ ...job, witness: Buffer.from("null") }),
    runWriteSetJob({ ...job, witness: Buffer.from('{"state":{}}') }),
    runWriteSetJob({ ...job, witness: Buffer.from('{"state":["0x1"]}') }),
    await proveWith(witnessJobOf(BLOCK, open, BLOCK.nodes), () => null),
    await proveWith(witnessJobOf(BLOCK, open, BLOCK.nodes), () => BLOCK.afterProofs.proofOf(UNTOUCHED, [])),
  ];
  assert.deepEqual(
    malformed.filter((output) => output.kind !== "unproven" || output.reason !== "malformed"),
    [],
  );
  assert.equal(runWriteSetJob({ ...job, packed: job.packed.subarray(0, -3) }).kind, "unproven");
});

test("random blocks: the truth is proven, and no lie is", async (t) => {
  const target = await createTarget({ after: (end) => t.after(end as () => void) });
  await target.run(createChoices(1, 0), 0);
});
