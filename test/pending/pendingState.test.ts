import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccountState, StateKeys, StateSource } from "../../src/core/stateReader.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import { pendingState } from "../../src/pending/pendingState.ts";
import { flashblock, hashOf } from "../support/builders/flashblocks.ts";
import { createRig } from "./pendingRig.ts";

const WRITTEN: Address = `0x${"aa".repeat(20)}`;
const CREATED: Address = `0x${"bb".repeat(20)}`;
const OTHER: Address = `0x${"cc".repeat(20)}`;
const account = (nonce: bigint, codeHash = hashOf(5)): AccountState => ({ nonce, balance: 1n, codeHash });
const CODE = Uint8Array.of(1);
const signal = new AbortController().signal;

test("writes of pending blocks hide the base, and only other values are requested", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-0", {
    changes: [
      [WRITTEN, { account: account(7n), isCleared: false, slots: new Map([[hashOf(1), Uint8Array.of(9)]]) }],
      [CREATED, { account: account(1n, hashOf(6)), code: CODE, isCleared: true, slots: new Map() }],
    ],
  });
  await rig.send(flashblock(0));
  const asked: StateKeys[] = [];
  const base: StateSource = {
    id: "base",
    read: async (keys) => {
      asked.push(keys);
      return {
        accounts: keys.accounts.map((address) => [address, account(0n)]),
        codes: [[hashOf(5), Uint8Array.of(5)]],
        slots: keys.slots.map(([address, slot]) => [address, slot, Uint8Array.of(3)]),
        blockHashes: keys.blockHashes.map((number) => [number, hashOf(number)]),
      };
    },
  };
  const source = pendingState(rig.view(), base);
  const values = await source.read(
    {
      accounts: [WRITTEN, CREATED, OTHER],
      slots: [
        [WRITTEN, hashOf(1)],
        [WRITTEN, hashOf(2)],
        [CREATED, hashOf(2)],
      ],
      blockHashes: [100n, 99n],
    },
    signal,
  );
  assert.deepEqual(asked, [{ accounts: [WRITTEN, OTHER], slots: [[WRITTEN, hashOf(2)]], blockHashes: [99n] }]);
  assert.deepEqual(Object.fromEntries(values.accounts), {
    [WRITTEN]: account(7n),
    [CREATED]: account(1n, hashOf(6)),
    [OTHER]: account(0n),
  });
  assert.deepEqual(
    values.slots.map(([address, slot, value]) => [address, slot, value[0]]),
    [
      [WRITTEN, hashOf(2), 3],
      [WRITTEN, hashOf(1), 9],
      [CREATED, hashOf(2), undefined],
    ],
  );
  assert.deepEqual(Object.fromEntries(values.codes), { [hashOf(5)]: Uint8Array.of(5), [hashOf(6)]: CODE });
  assert.deepEqual(
    new Map(values.blockHashes),
    new Map([
      [99n, hashOf(99)],
      [100n, hashOf(100)],
    ]),
  );
});

test("extra values of the base do not replace the writes of pending blocks", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-0", {
    changes: [[WRITTEN, { account: account(7n), isCleared: false, slots: new Map([[hashOf(1), Uint8Array.of(9)]]) }]],
  });
  await rig.send(flashblock(0));
  const base: StateSource = {
    id: "base",
    read: async () => ({
      accounts: [
        [OTHER, account(1n)],
        [WRITTEN, account(6n)],
      ],
      codes: [],
      slots: [[WRITTEN, hashOf(1), Uint8Array.of(8)]],
      blockHashes: [],
    }),
  };
  const values = await pendingState(rig.view(), base).read({ accounts: [OTHER], slots: [], blockHashes: [] }, signal);
  assert.deepEqual(values.accounts, [[OTHER, account(1n)]]);
  assert.deepEqual(values.slots, []);
});

test("a read of written values sends no request", async (t) => {
  const rig = createRig(t);
  rig.fake.say("101-0", { changes: [[CREATED, { account: undefined, isCleared: true, slots: new Map() }]] });
  await rig.send(flashblock(0));
  const base: StateSource = { id: "base", read: () => Promise.reject(new Error("asked")) };
  const values = await pendingState(rig.view(), base).read(
    { accounts: [CREATED], slots: [[CREATED, hashOf(1)]], blockHashes: [] },
    signal,
  );
  assert.deepEqual(values.accounts, [[CREATED, undefined]]);
  assert.equal(values.slots[0]?.[2].length, 0);
});
