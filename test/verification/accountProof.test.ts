import assert from "node:assert/strict";
import { test } from "node:test";
import { RLP } from "@ethereumjs/rlp";
import { type Data, formatData, type Hash, parseData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256 } from "../../src/ethereum/keccak.ts";
import { checkProof } from "../../src/verification/checkProof.ts";
import { createProvenState, type ProofResponse, slotOf } from "../support/builders/provenState.ts";

const addressOf = (number: number): Data => `0x${number.toString(16).padStart(40, "0")}`;
const CODE_HASH: Hash = `0x${"c0".repeat(32)}`;
const SLOTS = 200;
const ACCOUNTS = 300;

/** Account 1 has slots, 2 only code, the others have neither. */
const accountsOf = (age: bigint) => {
  const slots = new Map(
    Array.from({ length: SLOTS }, (_, index) => [slotOf(index), BigInt(index) * 1_000n + 1n + age]),
  );
  return new Map(
    Array.from({ length: ACCOUNTS }, (_, number) => [
      addressOf(number),
      {
        ...{ nonce: BigInt(number), balance: BigInt(number) * 10n ** 15n + age },
        codeHash: number === 1 || number === 2 ? CODE_HASH : EMPTY_CODE_HASH,
        slots: number === 1 ? slots : new Map<Hash, bigint>(),
      },
    ]),
  );
};

const [state, older] = await Promise.all([createProvenState(accountsOf(0n)), createProvenState(accountsOf(7n))]);
const CONTRACT = addressOf(1);
const ABSENT = addressOf(9_999);
const ABSENT_SLOT = "0xffff";
const KEYS = ["0x3", "0x0", ABSENT_SLOT];

/** A right proof of an absent account has no finding. */
const outcomeOf = (response: object, address: Data, keys: readonly string[]): string =>
  checkProof({ ...response }, { stateRoot: state.stateRoot, address, keys })[0]?.outcome ?? "absent";

const flip = (text: string): string => text.slice(0, -1) + (text.endsWith("1") ? "2" : "1");

test("accounts and slots, with a value, empty or absent, follow from the state root", async () => {
  for (const [address, keys] of [
    [CONTRACT, KEYS],
    [addressOf(2), ["0x1"]],
    [addressOf(3), []],
    [ABSENT, []],
    [ABSENT, KEYS],
  ] as const) {
    const expected = address === ABSENT ? "absent" : "passed";
    assert.equal(outcomeOf(await state.proofOf(address, keys), address, keys), expected, `${address} ${keys}`);
  }
});

test("keys may be short, padded, without a prefix, or in capitals, and nodes may return another of these forms", async () => {
  const honest = await state.proofOf(CONTRACT, ["0xab"]);
  const [slot] = honest.storageProof;
  assert.ok(slot);
  for (const asked of ["0xab", "ab", "0xAB", "0x00ab", slotOf(0xab)]) {
    for (const key of ["0xab", "ab", "0x00ab", slotOf(0xab)]) {
      assert.equal(outcomeOf({ ...honest, storageProof: [{ ...slot, key }] }, CONTRACT, [asked]), "passed");
    }
  }
  const zero = await state.proofOf(CONTRACT, ["0x0"]);
  const unpadded = { ...zero, storageProof: zero.storageProof.map((item) => ({ ...item, key: "0x" })) };
  assert.equal(outcomeOf(unpadded, CONTRACT, ["0x0"]), "passed");
});

test("forms of single clients are accepted", async () => {
  const contract = await state.proofOf(CONTRACT, KEYS);
  const absent = await state.proofOf(ABSENT, KEYS);
  const empty = await state.proofOf(addressOf(2), ["0x1"]);
  const accepted: Readonly<Record<string, readonly [object, Data, readonly string[]]>> = {
    "geth: zeros of an absent account": [{ ...absent, codeHash: ZERO_HASH, storageHash: ZERO_HASH }, ABSENT, KEYS],
    "Besu: sorted slots": [{ ...contract, storageProof: contract.storageProof.toReversed() }, CONTRACT, KEYS],
    "Besu: each slot once": [contract, CONTRACT, [...KEYS, "0x0"]],
    "Besu: no slots of an absent account": [{ ...absent, storageProof: [] }, ABSENT, KEYS],
    "Erigon: null for no nodes": [
      { ...absent, storageProof: absent.storageProof.map((slot) => ({ ...slot, proof: null })) },
      ABSENT,
      KEYS,
    ],
    "Nethermind: empty nodes": [{ ...absent, accountProof: [...absent.accountProof, "0x"] }, ABSENT, KEYS],
    "the node of the empty trie": [
      { ...empty, storageProof: empty.storageProof.map((slot) => ({ ...slot, proof: ["0x80"], value: "0x" })) },
      addressOf(2),
      ["0x1"],
    ],
    "padded numbers": [{ ...contract, balance: slotOf(BigInt(contract.balance)), nonce: "0x01" }, CONTRACT, KEYS],
    "no address": [{ ...contract, address: undefined }, CONTRACT, KEYS],
  };
  for (const [name, [response, address, keys]] of Object.entries(accepted)) {
    assert.equal(outcomeOf(response, address, keys), address === ABSENT ? "absent" : "passed", name);
  }
});

const withSlot = (
  response: ProofResponse,
  change: (slot: ProofResponse["storageProof"][number]) => object,
): object => ({
  ...response,
  storageProof: response.storageProof.map((slot, index) => (index === 0 ? change(slot) : slot)),
});

const NO_ACCOUNT = {
  ...{ balance: "0x0", nonce: "0x0", codeHash: EMPTY_CODE_HASH },
  storageHash: formatData(keccak256(Uint8Array.of(0x80))),
};

test("each class of lies about a proof is found", async () => {
  const honest = await state.proofOf(CONTRACT, KEYS);
  const { accountProof, storageProof } = honest;
  const [first, second] = storageProof;
  assert.ok(first && second);
  const lies: Readonly<Record<string, object>> = {
    "a byte of an account node": {
      ...honest,
      accountProof: accountProof.with(1, `${accountProof[1]?.slice(0, -2)}ff` as Data),
    },
    "a byte of a slot node": withSlot(honest, (slot) => ({ ...slot, proof: slot.proof.map(flip) })),
    "a dropped node": { ...honest, accountProof: accountProof.toSpliced(1, 1) },
    "a truncated proof": { ...honest, accountProof: accountProof.slice(0, -1) },
    "no proof": { ...honest, accountProof: [] },
    "a surplus node": { ...honest, accountProof: [...accountProof, first.proof[0]] },
    "the value of a slot": withSlot(honest, (slot) => ({ ...slot, value: flip(slot.value) })),
    "no value of a slot": withSlot(honest, ({ value: _, ...slot }) => slot),
    "the balance": { ...honest, balance: flip(honest.balance) },
    "the nonce": { ...honest, nonce: flip(honest.nonce) },
    "the hash of the code": { ...honest, codeHash: flip(honest.codeHash) },
    "no code": { ...honest, codeHash: ZERO_HASH },
    "the root of the storage": { ...honest, storageHash: flip(honest.storageHash) },
    "an empty slot": withSlot(honest, (slot) => ({ ...slot, value: "0x0", proof: [] })),
    "an empty storage": {
      ...honest,
      storageHash: NO_ACCOUNT.storageHash,
      storageProof: storageProof.map((slot) => ({ ...slot, value: "0x0", proof: [] })),
    },
    "an absent account": { ...(await state.proofOf(ABSENT, KEYS)), address: CONTRACT },
    "an absent account without nodes": { ...honest, ...NO_ACCOUNT, accountProof: [], storageProof: [] },
    "swapped slots": {
      ...honest,
      storageProof: [{ ...second, key: first.key }, { ...first, key: second.key }, ...storageProof.slice(2)],
    },
    "a dropped slot": { ...honest, storageProof: storageProof.slice(1) },
    "no slots": { ...honest, storageProof: [] },
    "a slot that was not requested": { ...honest, storageProof: [...storageProof, ...storageProof] },
    "another slot": withSlot(honest, (slot) => ({ ...slot, key: "0x4" })),
    "an older proof": await older.proofOf(CONTRACT, KEYS),
    "the proof of another account": { ...(await state.proofOf(addressOf(2), KEYS)), address: CONTRACT },
    "another address": { ...honest, address: addressOf(2) },
    "nodes that are no bytes": { ...honest, accountProof: ["0xabc", 7] },
    "slots that are no list": { ...honest, storageProof: "0x" },
    "keys that are no slots": withSlot(honest, (slot) => ({ ...slot, key: `0x1${"00".repeat(32)}` })),
  };
  assert.equal(outcomeOf(honest, CONTRACT, KEYS), "passed");
  for (const [name, lie] of Object.entries(lies)) {
    assert.equal(outcomeOf(lie, CONTRACT, KEYS), "failed", name);
  }
});

const leafOnly = (value: Uint8Array, address: Data): { readonly stateRoot: Data; readonly node: Data } => {
  const key = keccak256(parseData(address));
  const node = RLP.encode([Uint8Array.from([0x20, ...key]), value]);
  return { stateRoot: formatData(keccak256(node)), node: formatData(node) };
};

test("an account of another form under the right root is no lie: the chain has an encoding of its own", () => {
  const fields = [Uint8Array.of(1), Uint8Array.of(2), keccak256(Uint8Array.of(0x80)), parseData(EMPTY_CODE_HASH)];
  const outcome = (items: readonly Uint8Array[]): string => {
    const { stateRoot, node } = leafOnly(RLP.encode([...items]), CONTRACT);
    const response = { ...NO_ACCOUNT, nonce: "0x1", balance: "0x2", accountProof: [node], storageProof: [] };
    return checkProof(response, { stateRoot, address: CONTRACT, keys: [] })[0]?.outcome ?? "absent";
  };
  assert.equal(outcome(fields), "passed");
  assert.equal(outcome([Uint8Array.of(1), ...fields]), "uncomputable");
  assert.equal(outcome(fields.slice(1)), "uncomputable");
});
