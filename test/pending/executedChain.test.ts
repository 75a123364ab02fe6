import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { AccountState, StateChanges, StateKeys, StateValues } from "../../src/core/stateReader.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { CachedState } from "../../src/evm/reads/cachedState.ts";
import { MissingState } from "../../src/evm/reads/missingState.ts";
import type { MessageBase } from "../../src/pending/executableMessage.ts";
import { ExecutedChain, layersOf } from "../../src/pending/executedChain.ts";
import { flashblock } from "../support/builders/flashblocks.ts";

const ALICE: Address = `0x${"a1".repeat(20)}`;
const BOB: Address = `0x${"b0".repeat(20)}`;
const SLOT: Hash = `0x${"0".repeat(63)}1`;
const block = (number: bigint): BlockId => ({ number, hash: `0x${number.toString(16).padStart(64, "0")}` });
const account = (balance: bigint): AccountState => ({ nonce: 1n, balance, codeHash: EMPTY_CODE_HASH });
const keysOf = (...accounts: Address[]): StateKeys => ({ accounts, slots: [], blockHashes: [] });
const valuesAt = (balance: bigint, { accounts }: StateKeys): StateValues => ({
  accounts: accounts.map((address) => [address, account(balance)]),
  codes: [],
  slots: [],
  blockHashes: [],
});
const balanceOf = (chain: ExecutedChain, address: Address) =>
  chain.reader([], new MissingState(1)).account(address)?.balance;
const missingOf = (chain: ExecutedChain, ...addresses: Address[]): StateKeys => {
  const missing = new MissingState();
  const reader = chain.reader([], missing);
  for (const address of addresses) {
    reader.account(address);
  }
  return missing.keys();
};
const { environment } = flashblock(0);
assert.ok(environment);
const wrote = (address: Address, balance: bigint): StateChanges =>
  new Map([[address, { account: account(balance), isCleared: false, slots: new Map() }]]);
/** A version without transactions. */
const version = (id: number, layer: StateChanges | undefined, before = id === 1 ? undefined : id - 1) => ({
  ...{ id, before, layer, raws: [], encodedReceipts: [], transactions: [], bloom: new Uint8Array(0), gasUsed: 0n },
  environment,
});

type Fetch = (base: BlockId, keys: StateKeys) => Promise<StateValues>;

/** A chain whose known values are fetched at its base. */
const create = (fetch: Fetch, codes = new Map<Hash, Uint8Array>()) => {
  const empty = () => new CachedState({ codes, isNative: () => false });
  const chain = new ExecutedChain(empty());
  let base: MessageBase = { block: block(1n), through: undefined, beginning: 0 };
  const moveTo = (next: BlockId, through: number | undefined): void => {
    base = { block: next, through, beginning: base.beginning + (through === undefined ? 1 : 0) };
    chain.moveTo(base, empty());
  };
  chain.moveTo(base, empty());
  return { chain, moveTo, fetch: (keys: StateKeys) => chain.fetch(keys, [], (missing) => fetch(base.block, missing)) };
};

test("a sealed block that was executed leaves known values valid and updates what it wrote", async () => {
  const { chain, moveTo, fetch } = create(async (_, keys) => valuesAt(5n, keys));
  await fetch(keysOf(ALICE, BOB));
  chain.add(version(1, wrote(ALICE, 7n)));
  chain.add(version(2, wrote(ALICE, 6n)));
  chain.add(version(3, wrote(BOB, 8n)));
  moveTo(block(2n), 2);
  assert.equal(balanceOf(chain, ALICE), 6n);
  assert.equal(balanceOf(chain, BOB), 5n);
  assert.deepEqual(
    chain.ancestors(3).map(({ id }) => id),
    [3],
    "the versions of the block are part of the base",
  );
});

test("a sealed block whose state is not known evicts all known values, and later versions stay", async () => {
  const { chain, moveTo, fetch } = create(async (_, keys) => valuesAt(5n, keys));
  await fetch(keysOf(ALICE));
  chain.add(version(1, undefined));
  chain.add(version(2, undefined));
  moveTo(block(2n), 1);
  assert.deepEqual(missingOf(chain, ALICE), keysOf(ALICE));
  assert.equal(layersOf(chain.ancestors(2)), undefined);
});

test("the chain above another block has no value and no version of the one before", async () => {
  const { chain, moveTo, fetch } = create(async (at, keys) => valuesAt(at.number, keys));
  await fetch(keysOf(ALICE));
  chain.add(version(1, wrote(BOB, 6n)));
  moveTo(block(2n), undefined);
  assert.deepEqual(missingOf(chain, ALICE, BOB), keysOf(ALICE, BOB));
  assert.throws(() => chain.ancestors(1), /not executed in this thread/);
});

test("a thread that replaces another starts above the sealed block, whose messages it has not executed", () => {
  const empty = new CachedState({ codes: new Map(), isNative: () => false });
  const chain = new ExecutedChain(empty);
  chain.moveTo({ block: block(2n), through: 3, beginning: 1 }, empty);
  assert.deepEqual(chain.ancestors(3), []);
  assert.throws(() => chain.ancestors(4), /not executed in this thread/);
});

test("the code of a contract that a message created is found although the cache of codes has evicted it", () => {
  const codes = new Map<Hash, Uint8Array>();
  const { chain } = create(async (_, keys) => valuesAt(5n, keys), codes);
  const hash: Hash = `0x${"c0".repeat(32)}`;
  const created: StateChanges = new Map([
    [ALICE, { account: { ...account(1n), codeHash: hash }, code: Uint8Array.of(1), isCleared: true, slots: new Map() }],
  ]);
  chain.add(version(1, created));
  codes.clear();
  assert.deepEqual(chain.reader([created], new MissingState(1)).code(hash, ALICE), Uint8Array.of(1));
});

test("a block that writes known values again and again evicts none", async () => {
  const { chain, moveTo, fetch } = create(async (_, keys) => valuesAt(5n, keys));
  await fetch(keysOf(BOB));
  const slots = Array.from({ length: 10_000 }, (_, at): [Hash, Uint8Array] => [
    `0x${at.toString(16).padStart(64, "0")}`,
    Uint8Array.of(1),
  ]);
  for (let id = 1; id < 30; id++) {
    chain.add(version(id, new Map([[ALICE, { account: account(1n), isCleared: false, slots: new Map(slots) }]])));
    moveTo(block(BigInt(id + 1)), id);
  }
  assert.equal(balanceOf(chain, BOB), 5n);
});

test("an account whose code was evicted is fetched again", async () => {
  const codes = new Map<Hash, Uint8Array>();
  const hash: Hash = `0x${"c0".repeat(32)}`;
  const values: Fetch = async (_, { accounts }) => ({
    accounts: accounts.map((address) => [address, { ...account(1n), codeHash: hash }]),
    codes: [[hash, Uint8Array.of(0)]],
    slots: [],
    blockHashes: [],
  });
  const { fetch } = create(values, codes);
  assert.equal((await fetch(keysOf(ALICE))).requested, 1);
  assert.equal((await fetch(keysOf(ALICE))).requested, 0);
  codes.clear();
  assert.equal((await fetch(keysOf(ALICE))).requested, 1);
});

test("a fetched proxy predicts its implementation's account, and the slots that the implementation reads", async () => {
  const implementation: Hash = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
  const proxy = ALICE;
  const logic = BOB;
  /** PUSH1 1, SLOAD. */
  const code = Uint8Array.of(0x60, 1, 0x54);
  const hash: Hash = `0x${"c1".repeat(32)}`;
  const values: Fetch = async (_, { accounts, slots }) => ({
    accounts: accounts.map((address) => [address, { ...account(1n), codeHash: hash }]),
    codes: accounts.length > 0 ? [[hash, code]] : [],
    slots: slots.map(([address, slot]) => [address, slot, Uint8Array.from(Buffer.from(logic.slice(2), "hex"))]),
    blockHashes: [],
  });
  const { fetch } = create(values);
  const first = await fetch({ accounts: [], slots: [[proxy, implementation]], blockHashes: [] });
  assert.deepEqual(first.predicted, keysOf(logic));
  const second = await fetch(first.predicted);
  assert.deepEqual(second.predicted.slots, [[proxy, SLOT]]);
});

test("code that ends inside a PUSH20 predicts no account: a node refuses the request for a part of an address", async () => {
  const hash: Hash = `0x${"c2".repeat(32)}`;
  const values: Fetch = async (_, { accounts }) => ({
    accounts: accounts.map((address) => [address, { ...account(1n), codeHash: hash }]),
    // The metadata at the end of Solidity's code has any bytes.
    codes: [[hash, Uint8Array.of(0x00, 0x73, 0x6f, 0x6c, 0x63, 0x43, 0x00, 0x08, 0x25, 0x00, 0x33)]],
    slots: [],
    blockHashes: [],
  });
  const { fetch } = create(values);
  const { predicted } = await fetch(keysOf(ALICE));
  assert.deepEqual(predicted, { accounts: [], slots: [], blockHashes: [] });
});
