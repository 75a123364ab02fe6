import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { AccountState, StateKeys, StateValues } from "../../src/core/stateReader.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { FirstMissing } from "../../src/evm/reads/missingState.ts";
import { BaseState } from "../../src/pending/baseState.ts";

const ALICE: Address = `0x${"a1".repeat(20)}`;
const BOB: Address = `0x${"b0".repeat(20)}`;
const SLOT: Hash = `0x${"0".repeat(63)}1`;
const block = (number: bigint): BlockId => ({ number, hash: `0x${number.toString(16).padStart(64, "0")}` });
const account = (balance: bigint): AccountState => ({ nonce: 1n, balance, codeHash: EMPTY_CODE_HASH });
const keysOf = (...accounts: Address[]): StateKeys => ({ accounts, slots: [], blockHashes: [] });
const valuesAt = (balance: bigint, { accounts, slots }: StateKeys): StateValues => ({
  accounts: accounts.map((address) => [address, account(balance)]),
  codes: [],
  slots: slots.map(([address, slot]) => [address, slot, Uint8Array.of(1)]),
  blockHashes: [],
});
const balanceOf = (base: BaseState, address: Address) =>
  base.known.reader(new FirstMissing()).account(address)?.balance;
const wrote = (address: Address, balance: bigint) =>
  new Map([[address, { account: account(balance), isCleared: false, slots: new Map() }]]);

const create = (fetch: (base: BlockId, keys: StateKeys) => Promise<StateValues>) =>
  new BaseState({ fetch, codes: new Map(), isNative: () => false }, block(1n));

test("a block with known writes leaves cached values valid and updates what it wrote", async () => {
  const base = create(async (_, keys) => valuesAt(5n, keys));
  await base.fetch(keysOf(ALICE, BOB), []);
  base.advance(block(2n), [wrote(ALICE, 6n)]);
  assert.equal(balanceOf(base, ALICE), 6n);
  assert.equal(balanceOf(base, BOB), 5n);
});

test("a block with unknown writes evicts all cached values", async () => {
  const base = create(async (_, keys) => valuesAt(5n, keys));
  await base.fetch(keysOf(ALICE), []);
  base.reset(block(2n));
  assert.deepEqual(base.known.uncached(keysOf(ALICE)), keysOf(ALICE));
});

test("values that arrive after the base moved are discarded, because the next block may have written them", async () => {
  const gate = Promise.withResolvers<void>();
  const base = create(async (at, keys) => {
    if (at.number === 1n) {
      await gate.promise;
    }
    return valuesAt(at.number * 5n, keys);
  });
  const slow = base.fetch(keysOf(ALICE, BOB), []);
  base.advance(block(2n), [wrote(ALICE, 6n)]);
  gate.resolve();
  await slow;
  assert.equal(balanceOf(base, ALICE), 6n);
  assert.deepEqual(base.known.uncached(keysOf(BOB)), keysOf(BOB));
  await base.fetch(keysOf(BOB), []);
  assert.equal(balanceOf(base, BOB), 10n);
});

test("an account whose code was evicted is fetched again", async () => {
  const codes = new Map<Hash, Uint8Array>();
  const hash: Hash = `0x${"c0".repeat(32)}`;
  const fetch = async (_: BlockId, { accounts }: StateKeys): Promise<StateValues> => ({
    accounts: accounts.map((address) => [address, { ...account(1n), codeHash: hash }]),
    codes: [[hash, Uint8Array.of(0)]],
    slots: [],
    blockHashes: [],
  });
  const base = new BaseState({ fetch, codes, isNative: () => false }, block(1n));
  assert.equal((await base.fetch(keysOf(ALICE), [])).requested, 1);
  assert.equal((await base.fetch(keysOf(ALICE), [])).requested, 0);
  codes.clear();
  assert.equal((await base.fetch(keysOf(ALICE), [])).requested, 1);
});

test("a fetched proxy predicts its implementation's account, and the slots that the implementation reads", async () => {
  const implementation: Hash = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
  const proxy = ALICE;
  const logic = BOB;
  /** PUSH1 1, SLOAD. */
  const code = Uint8Array.of(0x60, 1, 0x54);
  const hash: Hash = `0x${"c1".repeat(32)}`;
  const fetch = async (_: BlockId, { accounts, slots }: StateKeys): Promise<StateValues> => ({
    accounts: accounts.map((address) => [address, { ...account(1n), codeHash: hash }]),
    codes: accounts.length > 0 ? [[hash, code]] : [],
    slots: slots.map(([address, slot]) => [address, slot, Uint8Array.from(Buffer.from(logic.slice(2), "hex"))]),
    blockHashes: [],
  });
  const base = new BaseState({ fetch, codes: new Map(), isNative: () => false }, block(1n));
  const first = await base.fetch({ accounts: [], slots: [[proxy, implementation]], blockHashes: [] }, []);
  assert.deepEqual(first.predicted, keysOf(logic));
  const second = await base.fetch(first.predicted, []);
  assert.deepEqual(second.predicted.slots, [[proxy, SLOT]]);
});

test("code that ends inside a PUSH20 predicts no account: a node refuses the request for a part of an address", async () => {
  const hash: Hash = `0x${"c2".repeat(32)}`;
  const fetch = async (_: BlockId, { accounts }: StateKeys): Promise<StateValues> => ({
    accounts: accounts.map((address) => [address, { ...account(1n), codeHash: hash }]),
    // The metadata at the end of Solidity's code has any bytes.
    codes: [[hash, Uint8Array.of(0x00, 0x73, 0x6f, 0x6c, 0x63, 0x43, 0x00, 0x08, 0x25, 0x00, 0x33)]],
    slots: [],
    blockHashes: [],
  });
  const base = new BaseState({ fetch, codes: new Map(), isNative: () => false }, block(1n));
  const { predicted } = await base.fetch(keysOf(ALICE), []);
  assert.deepEqual(predicted, { accounts: [], slots: [], blockHashes: [] });
});
