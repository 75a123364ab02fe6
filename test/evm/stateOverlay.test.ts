import assert from "node:assert/strict";
import { test } from "node:test";
import { Address as AddressBytes, KECCAK256_RLP } from "@ethereumjs/util";
import fc from "fast-check";
import { type Address, formatData, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { LibraryState } from "../../src/evm/libraryState.ts";
import { EMPTY_CODE_HASH } from "../../src/evm/overlayEntry.ts";
import { ReferenceState } from "../../src/evm/reference/referenceState.ts";
import { StateOverlay } from "../../src/evm/stateOverlay.ts";
import { type PlainAccount, type PlainState, readerOf, withChanges } from "../support/builders/stateRoot.ts";

const ADDRESSES = [1, 2, 3].map((digit): Address => `0x${String(digit).repeat(40)}`);
const SLOTS = [1, 2].map((digit): Hash => `0x${"0".repeat(63)}${digit}`);
const CODE = Uint8Array.of(0x60, 0x01);

const BEFORE: PlainState = new Map([
  [
    ADDRESSES[0] ?? "0x",
    {
      nonce: 1n,
      balance: 5n,
      code: CODE,
      codeHash: keccak256Hex(CODE),
      storage: new Map([[SLOTS[0] ?? "0x", Uint8Array.of(9)]]),
    },
  ],
]);

type Step =
  | { readonly kind: "account"; readonly address: Address; readonly nonce: bigint; readonly balance: bigint }
  | { readonly kind: "slot"; readonly address: Address; readonly slot: Hash; readonly value: number }
  | { readonly kind: "code"; readonly address: Address; readonly byte: number }
  | { readonly kind: "delete" | "clear"; readonly address: Address }
  | { readonly kind: "mark" | "keep" | "undo" };

const address = fc.constantFrom(...ADDRESSES);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("account" as const), address, nonce: fc.bigInt(0n, 9n), balance: fc.bigInt(0n, 9n) }),
  fc.record({
    kind: fc.constant("slot" as const),
    address,
    slot: fc.constantFrom(...SLOTS),
    value: fc.integer({ min: 0, max: 3 }),
  }),
  fc.record({ kind: fc.constant("code" as const), address, byte: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constantFrom("delete" as const, "clear" as const), address }),
  fc.record({ kind: fc.constantFrom("mark" as const, "keep" as const, "undo" as const) }),
);

interface Model {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly code: string;
  readonly slots: readonly number[];
}

/** A simple state, which is copied completely at each checkpoint. */
const createModel = () => {
  let now = new Map<Address, Model>(
    ADDRESSES.map((each) => {
      const account = BEFORE.get(each);
      const slots = SLOTS.map((slot) => account?.storage.get(slot)?.[0] ?? 0);
      const { nonce = 0n, balance = 0n } = account ?? {};
      return [each, { nonce, balance, code: (account?.code ?? new Uint8Array(0)).toHex(), slots }];
    }),
  );
  const stack: (typeof now)[] = [];
  const change = (each: Address, fields: Partial<Model>) => {
    const old = now.get(each);
    if (old !== undefined) {
      now.set(each, { ...old, ...fields });
    }
  };
  return {
    get now() {
      return now;
    },
    depth: () => stack.length,
    apply: (each: Step) => {
      if (each.kind === "account") {
        change(each.address, { nonce: each.nonce, balance: each.balance });
      }
      if (each.kind === "code") {
        change(each.address, { code: each.byte.toString(16).padStart(2, "0") });
      }
      if (each.kind === "clear") {
        change(each.address, { slots: SLOTS.map(() => 0) });
      }
      if (each.kind === "delete") {
        change(each.address, { nonce: 0n, balance: 0n, code: "", slots: SLOTS.map(() => 0) });
      }
      if (each.kind === "slot") {
        const slots = now.get(each.address)?.slots ?? [];
        change(each.address, { slots: SLOTS.map((slot, at) => (slot === each.slot ? each.value : (slots[at] ?? 0))) });
      }
      if (each.kind === "mark") {
        stack.push(new Map(now));
      }
      if (each.kind === "keep") {
        stack.pop();
      }
      if (each.kind === "undo") {
        now = stack.pop() ?? now;
      }
    },
  };
};

const applyTo = (state: StateOverlay | ReferenceState, each: Step): void => {
  if (each.kind === "account") {
    state.setAccount(each.address, each.nonce, each.balance);
  }
  if (each.kind === "code") {
    state.setCode(each.address, Uint8Array.of(each.byte));
  }
  if (each.kind === "clear") {
    state.clear(each.address);
  }
  if (each.kind === "delete") {
    state.delete(each.address);
  }
  if (each.kind === "slot") {
    state.setStorage(each.address, each.slot, each.value === 0 ? new Uint8Array(0) : Uint8Array.of(each.value));
  }
  if (each.kind === "mark") {
    state.mark();
  }
  if (each.kind === "keep") {
    state.keep();
  }
  if (each.kind === "undo") {
    state.undo();
  }
};

const valuesOf = (state: StateOverlay | ReferenceState): Map<Address, Model> =>
  new Map(
    ADDRESSES.map((each) => [
      each,
      {
        nonce: state.nonceOf(each),
        balance: state.balanceOf(each),
        code: state.codeOf(each).toHex(),
        slots: SLOTS.map((slot) => state.storageOf(each, slot)[0] ?? 0),
      },
    ]),
  );

const overlay = (state: PlainState) => new StateOverlay(readerOf(state, () => ZERO_HASH));

for (const State of [StateOverlay, ReferenceState]) {
  test(`after any steps and checkpoints, ${State.name} equals a copied state, and its changes create the same state again`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const state = new State(readerOf(BEFORE, () => ZERO_HASH));
        const model = createModel();
        for (const each of steps) {
          if ((each.kind === "keep" || each.kind === "undo") && model.depth() === 0) {
            continue;
          }
          applyTo(state, each);
          model.apply(each);
          assert.deepEqual(valuesOf(state), model.now);
        }
        assert.deepEqual(valuesOf(overlay(withChanges(BEFORE, state.changes()))), model.now);
      }),
    );
  });
}

test("the original value of a slot is its value before the transaction, at every checkpoint (EIP-2200)", async () => {
  const [where = "0x"] = ADDRESSES;
  const [slot = "0x"] = SLOTS;
  const state = overlay(BEFORE);
  const original = async () => {
    const key = Uint8Array.fromHex(slot.slice(2));
    return formatData(
      await new LibraryState(state).originalStorageCache.get(new AddressBytes(Uint8Array.fromHex(where.slice(2))), key),
    );
  };
  state.mark();
  state.setStorage(where, slot, Uint8Array.of(1));
  assert.equal(await original(), "0x09");
  state.undo();
  state.setStorage(where, slot, Uint8Array.of(2));
  assert.equal(await original(), "0x09");
  state.endTransaction(true);
  assert.equal(await original(), "0x02");
});

test("a touched empty account is deleted at the end (EIP-161), and a read one is not created", () => {
  const [, touched = "0x", read = "0x"] = ADDRESSES;
  const state = overlay(BEFORE);
  state.addBalance(touched, 0n);
  assert.equal(state.exists(touched), true);
  state.balanceOf(read);
  state.endTransaction(true);
  assert.equal(state.exists(touched), false);
  assert.equal(state.changes().has(read), false);
});

test("an account with storage alone prevents a creation (EIP-7610)", async () => {
  const [, where = "0x"] = ADDRESSES;
  const account: PlainAccount = {
    nonce: 0n,
    balance: 0n,
    code: new Uint8Array(0),
    codeHash: EMPTY_CODE_HASH,
    storage: new Map([[SLOTS[0] ?? "0x", Uint8Array.of(1)]]),
  };
  const state = overlay(new Map([[where, account]]));

  const libraryAccount = await new LibraryState(state).getAccount(new AddressBytes(Uint8Array.fromHex(where.slice(2))));
  assert.notDeepEqual(libraryAccount?.storageRoot, KECCAK256_RLP);
});
