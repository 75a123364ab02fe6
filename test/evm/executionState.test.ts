import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { StateReader } from "../../src/core/stateReader.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { ExecutionState } from "../../src/evm/executionState.ts";
import { ReferenceState } from "../../src/evm/reference/referenceState.ts";
import { createBlock, createMessage } from "../support/builders/plainCall.ts";
import { type PlainState, readerOf, withChanges } from "../support/builders/stateRoot.ts";

const ADDRESSES = [1, 2, 3].map((digit): Address => `0x${String(digit).repeat(40)}`);
const SLOTS = [1, 2].map((digit): Hash => `0x${"0".repeat(63)}${digit}`);
const NOTHING = new Uint8Array(0);
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

type Write =
  | { readonly kind: "account"; readonly address: Address; readonly nonce: bigint; readonly balance: bigint }
  | { readonly kind: "slot"; readonly address: Address; readonly slot: Hash; readonly value: number }
  | { readonly kind: "code"; readonly address: Address; readonly byte: number }
  | { readonly kind: "clear"; readonly address: Address };
type Step =
  | Write
  | { readonly kind: "end" }
  | { readonly kind: "delete"; readonly address: Address }
  | { readonly kind: "mark" | "keep" | "undo" };

const address = fc.constantFrom(...ADDRESSES);
const write: fc.Arbitrary<Write> = fc.oneof(
  fc.record({ kind: fc.constant("account" as const), address, nonce: fc.bigInt(0n, 9n), balance: fc.bigInt(0n, 9n) }),
  fc.record({
    kind: fc.constant("slot" as const),
    address,
    slot: fc.constantFrom(...SLOTS),
    value: fc.integer({ min: 0, max: 3 }),
  }),
  fc.record({ kind: fc.constant("code" as const), address, byte: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant("clear" as const), address }),
);
const committed: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: write },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("end" as const) }) },
);
const checkpointed: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: write },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const), address }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("mark" as const, "keep" as const, "undo" as const) }) },
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
      return [each, { nonce, balance, code: (account?.code ?? NOTHING).toHex(), slots }];
    }),
  );
  const stack: (typeof now)[] = [];
  const touched = new Set<Address>();
  const change = (each: Address, fields: Partial<Model>) => {
    const old = now.get(each);
    if (old !== undefined) {
      now.set(each, { ...old, ...fields });
    }
  };
  /** EIP-161 */
  const removeEmpty = () => {
    for (const each of touched) {
      const account = now.get(each);
      if (account?.nonce === 0n && account.balance === 0n && account.code === "") {
        change(each, { slots: SLOTS.map(() => 0) });
      }
    }
    touched.clear();
  };
  return {
    get now() {
      return now;
    },
    depth: () => stack.length,
    apply: (each: Step) => {
      if (each.kind === "account" || each.kind === "code") {
        touched.add(each.address);
      }
      if (each.kind === "end") {
        removeEmpty();
      }
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

const writeTo = (state: ExecutionState, each: Step): void => {
  switch (each.kind) {
    case "account":
      state.setAccount(each.address, each.nonce, each.balance);
      break;
    case "code":
      state.setCode(each.address, Uint8Array.of(each.byte));
      break;
    case "clear":
      state.clear(each.address);
      break;
    case "slot":
      state.setStorage(each.address, each.slot, each.value === 0 ? NOTHING : Uint8Array.of(each.value));
      break;
    case "end":
      state.endTransaction(true);
  }
};

const applyTo = (state: ReferenceState, each: Step): void => {
  switch (each.kind) {
    case "delete":
      state.delete(each.address);
      break;
    case "mark":
    case "keep":
    case "undo":
      state[each.kind]();
      break;
    default:
      writeTo(state, each);
  }
};

const valuesOf = (state: ExecutionState): Map<Address, Model> =>
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

const before = () => readerOf(BEFORE, () => ZERO_HASH);
const reread = (state: ExecutionState) =>
  valuesOf(new ReferenceState(readerOf(withChanges(BEFORE, state.changes()), () => ZERO_HASH)));

const RULES = rulesAt(fixedForks(1n, "prague"), 1n, 1n);
const SENDER: Address = `0x${"aa".repeat(20)}`;
const BLOCK = createBlock();
const MESSAGE = createMessage({ from: SENDER });

for (const kind of ["fast", "reference"] as const) {
  const engine = (await createEngines(kind))(RULES);

  test(`after any writes and their commits, the state of ${kind} equals a copied state, and its changes create it again`, () => {
    fc.assert(
      fc.property(fc.array(committed, { maxLength: 40 }), (steps) => {
        const state = engine.createState(before());
        const model = createModel();
        for (const each of steps) {
          writeTo(state, each);
          model.apply(each);
          assert.deepEqual(valuesOf(state), model.now);
        }
        assert.deepEqual(reread(state), model.now);
      }),
    );
  });

  test(`the original value of a slot is its value before the transaction (EIP-2200), on ${kind}`, async () => {
    const [to = "0x"] = ADDRESSES;
    const state = engine.createState(before());
    // Stores 1 in slot 1, then 2.
    state.setCode(to, Uint8Array.fromHex("60016001556002600155"));
    state.setStorage(to, SLOTS[0] ?? "0x", Uint8Array.of(2));
    state.endTransaction(true);
    const run = async (nonce: bigint) => {
      const { gasUsed } = await engine.transact({ state, block: BLOCK }, { ...MESSAGE, to, nonce });
      return gasUsed;
    };
    const stores = 4n * 3n + 2_100n + 2_900n + 100n;
    assert.equal(await run(0n), 21_000n + stores - 2_800n);
    assert.equal(await run(1n), 21_000n + stores - 2_800n);
    state.setStorage(to, SLOTS[0] ?? "0x", Uint8Array.of(1));
    state.endTransaction(true);
    // The first value is stored already.
    assert.equal(await run(2n), 21_000n + 4n * 3n + 2_200n + 2_900n);
  });

  test(`a touched empty account is deleted at the end (EIP-161), and a read one is not created, on ${kind}`, () => {
    const [, touched = "0x", read = "0x"] = ADDRESSES;
    const state = engine.createState(before());
    state.addBalance(touched, 0n);
    assert.notEqual(state.accountOf(touched), undefined);
    state.balanceOf(read);
    state.endTransaction(true);
    assert.equal(state.accountOf(touched), undefined);
    assert.equal(state.changes().has(read), false);
  });

  test(`an account with storage alone prevents a creation (EIP-7610), on ${kind}`, async () => {
    const create = (reader: StateReader) =>
      engine.transact({ state: engine.createState(reader), block: BLOCK }, MESSAGE);
    const { created } = await create(before());
    assert.notEqual(created, undefined);
    const { status, halt } = await create({
      ...before(),
      account: (each) =>
        each === created ? { nonce: 0n, balance: 0n, codeHash: EMPTY_CODE_HASH, hasStorage: true } : undefined,
    });
    assert.deepEqual([status, halt], ["halt", "contract address collision"]);
  });
}

test("after any steps and checkpoints, the reference's state equals a copied state, and its changes create it again", () => {
  fc.assert(
    fc.property(fc.array(checkpointed, { maxLength: 40 }), (steps) => {
      const state = new ReferenceState(before());
      const model = createModel();
      for (const each of steps) {
        if ((each.kind === "keep" || each.kind === "undo") && model.depth() === 0) {
          continue;
        }
        applyTo(state, each);
        model.apply(each);
        assert.deepEqual(valuesOf(state), model.now);
      }
      assert.deepEqual(reread(state), model.now);
    }),
  );
});
