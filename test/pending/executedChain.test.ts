import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { AccountState, StateChanges, StateKeys, StateValues } from "../../src/core/stateReader.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { FirstMissing, MissingState } from "../../src/evm/reads/missingState.ts";
import { ExecutedChain, layersOf } from "../../src/pending/executedChain.ts";
import { flashblock } from "../support/builders/flashblocks.ts";

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
const balanceOf = (chain: ExecutedChain, address: Address) =>
  chain.reader([], new FirstMissing()).account(address)?.balance;
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
const wrote = (address: Address, balance: bigint, isCleared = false): StateChanges =>
  new Map([[address, { account: account(balance), isCleared, slots: new Map() }]]);
/** A version without transactions. */
const version = (id: number, layer: StateChanges | undefined, before = id === 1 ? undefined : id - 1) => ({
  ...{ id, before, layer, raws: [], encodedReceipts: [], transactions: [], bloom: new Uint8Array(0), gasUsed: 0n },
  environment,
});

const create = (fetch: (base: BlockId, keys: StateKeys) => Promise<StateValues>) =>
  new ExecutedChain({ fetch, codes: new Map(), isNative: () => false }, block(1n));

test("a sealed block that was executed leaves known values valid and updates what it wrote", async () => {
  const chain = create(async (_, keys) => valuesAt(5n, keys));
  await chain.fetch(keysOf(ALICE, BOB), []);
  chain.add(version(1, wrote(ALICE, 7n)));
  chain.add(version(2, wrote(ALICE, 6n)));
  chain.add(version(3, wrote(BOB, 8n)));
  assert.equal(chain.seal(block(2n), 2), true);
  assert.equal(balanceOf(chain, ALICE), 6n);
  assert.equal(balanceOf(chain, BOB), 5n);
  assert.deepEqual([chain.has(2), chain.has(3)], [false, true]);
  assert.deepEqual(
    chain.ancestors(3).map(({ id }) => id),
    [3],
    "the versions of the block are part of the base",
  );
});

test("a sealed block whose state is not known evicts all known values, and later versions stay", async () => {
  const chain = create(async (_, keys) => valuesAt(5n, keys));
  await chain.fetch(keysOf(ALICE), []);
  chain.add(version(1, undefined));
  chain.add(version(2, undefined));
  assert.equal(chain.seal(block(2n), 1), false);
  assert.deepEqual(missingOf(chain, ALICE), keysOf(ALICE));
  assert.equal(layersOf(chain.ancestors(2)), undefined);
});

test("a block that creates an existing account again evicts all known values: its slots are others", async () => {
  const chain = create(async (_, keys) => valuesAt(5n, keys));
  await chain.fetch({ ...keysOf(ALICE, BOB), slots: [[ALICE, SLOT]] }, []);
  chain.add(version(1, wrote(ALICE, 6n, true)));
  assert.equal(chain.seal(block(2n), 1), true);
  assert.equal(balanceOf(chain, ALICE), 6n);
  assert.equal((await chain.fetch({ ...keysOf(ALICE, BOB), slots: [[ALICE, SLOT]] }, [])).requested, 2);
});

test("the chain above another block has no value and no version of the one before", async () => {
  const chain = create(async (at, keys) => valuesAt(at.number, keys));
  await chain.fetch(keysOf(ALICE), []);
  chain.add(version(1, wrote(BOB, 6n)));
  const next = chain.startAt(block(2n));
  assert.deepEqual(missingOf(next, ALICE, BOB), keysOf(ALICE, BOB));
  assert.throws(() => next.ancestors(1), /not executed in this thread/);
  assert.deepEqual([chain.has(1), balanceOf(chain, ALICE)], [true, 1n], "the discarded one stays");
});

test("values that arrive after another block was chosen are of the chain before", async () => {
  const gate = Promise.withResolvers<void>();
  const chain = create(async (at, keys) => {
    await gate.promise;
    return valuesAt(at.number, keys);
  });
  const slow = chain.fetch(keysOf(ALICE), []);
  const next = chain.startAt(block(2n));
  gate.resolve();
  await slow;
  assert.equal(balanceOf(chain, ALICE), 1n);
  assert.deepEqual(missingOf(next, ALICE), keysOf(ALICE));
});

test("values that arrive after the base moved are discarded, because the next block may have written them", async () => {
  const gate = Promise.withResolvers<void>();
  const chain = create(async (at, keys) => {
    if (at.number === 1n) {
      await gate.promise;
    }
    return valuesAt(at.number * 5n, keys);
  });
  const slow = chain.fetch(keysOf(ALICE, BOB), []);
  chain.add(version(1, wrote(ALICE, 6n)));
  chain.seal(block(2n), 1);
  gate.resolve();
  await slow;
  assert.equal(balanceOf(chain, ALICE), 6n);
  assert.deepEqual(missingOf(chain, BOB), keysOf(BOB));
  await chain.fetch(keysOf(BOB), []);
  assert.equal(balanceOf(chain, BOB), 10n);
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
  const chain = new ExecutedChain({ fetch, codes, isNative: () => false }, block(1n));
  assert.equal((await chain.fetch(keysOf(ALICE), [])).requested, 1);
  assert.equal((await chain.fetch(keysOf(ALICE), [])).requested, 0);
  codes.clear();
  assert.equal((await chain.fetch(keysOf(ALICE), [])).requested, 1);
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
  const chain = new ExecutedChain({ fetch, codes: new Map(), isNative: () => false }, block(1n));
  const first = await chain.fetch({ accounts: [], slots: [[proxy, implementation]], blockHashes: [] }, []);
  assert.deepEqual(first.predicted, keysOf(logic));
  const second = await chain.fetch(first.predicted, []);
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
  const chain = new ExecutedChain({ fetch, codes: new Map(), isNative: () => false }, block(1n));
  const { predicted } = await chain.fetch(keysOf(ALICE), []);
  assert.deepEqual(predicted, { accounts: [], slots: [], blockHashes: [] });
});
