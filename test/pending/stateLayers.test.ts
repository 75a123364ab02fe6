import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AccountChange } from "../../src/core/stateReader.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import { mergeChanges } from "../../src/evm/reads/writtenState.ts";
import { findAccount, findSlot } from "../../src/pending/stateLayers.ts";
import { hashOf } from "../support/builders/flashblocks.ts";

const address: Address = `0x${"aa".repeat(20)}`;

/** Each code has its own hash, as on a chain. */
const change = fc
  .record({
    exists: fc.boolean(),
    balance: fc.bigInt(0n, 5n),
    code: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    isCleared: fc.boolean(),
    slots: fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 9 })), {
      selector: ([slot]) => slot,
    }),
  })
  .map(
    ({
      exists,
      balance,
      code,
      isCleared,
      slots,
    }): { code: number | undefined; change: (codeBefore: number) => AccountChange } => ({
      code,
      change: (codeBefore) => ({
        account: exists ? { nonce: 0n, balance, codeHash: hashOf(code ?? codeBefore) } : undefined,
        ...(code === undefined ? {} : { code: Uint8Array.of(code) }),
        isCleared: isCleared || !exists,
        slots: new Map(
          slots.map(([slot, value]) => [hashOf(slot), value === 0 ? new Uint8Array(0) : Uint8Array.of(value)]),
        ),
      }),
    }),
  );

test("merged layers return the same values as the stack", () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), (made) => {
      let code = 0;
      const stack = made.map((each) => {
        const layer = new Map([[address, each.change(code)]]);
        code = each.code ?? code;
        return layer;
      });
      const newestFirst = stack.toReversed();
      const one = [mergeChanges(stack)];
      assert.deepEqual(findAccount(one, address)?.account, findAccount(newestFirst, address)?.account);
      assert.deepEqual(findAccount(one, address)?.isCleared, findAccount(newestFirst, address)?.isCleared);
      for (let slot = 0; slot <= 4; slot++) {
        assert.deepEqual(findSlot(one, address, hashOf(slot)), findSlot(newestFirst, address, hashOf(slot)));
      }
    }),
  );
});

test("a slot of a cleared account is zero, whatever older layers contain", () => {
  const older = new Map([
    [address, { account: undefined, isCleared: false, slots: new Map([[hashOf(1), Uint8Array.of(1)]]) }],
  ]);
  const newer = new Map([[address, { account: undefined, isCleared: true, slots: new Map() }]]);
  assert.deepEqual(findSlot([newer, older], address, hashOf(1)), new Uint8Array(0));
  assert.deepEqual(findSlot([older], address, hashOf(2)), undefined);
});

test("code that an older layer wrote is returned", () => {
  const account = { nonce: 0n, balance: 0n, codeHash: hashOf(1) };
  const older = new Map([[address, { account, code: Uint8Array.of(1), isCleared: true, slots: new Map() }]]);
  const newer = new Map([[address, { account: { ...account, balance: 9n }, isCleared: false, slots: new Map() }]]);
  assert.deepEqual(findAccount([newer, older], address), {
    account: { ...account, balance: 9n },
    code: Uint8Array.of(1),
    isCleared: true,
  });
  assert.deepEqual(findAccount([mergeChanges([older, newer])], address), findAccount([newer, older], address));
});
