import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY_CODE_HASH } from "../../../src/ethereum/keccak.ts";
import { StateValuesBuilder } from "../../../src/state/store/stateValuesBuilder.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { addressOf } from "../../support/builders/stateModel.ts";

const digits = (value: bigint): string => value.toString(16).padStart(64, "0");
const [ONE, TWO] = [addressOf(0), addressOf(1)];

test("an empty account does not exist, and one with a balance has the hash of no code", () => {
  const builder = new StateValuesBuilder();
  builder.addAccount(ONE, digits(0n), digits(0n), digits(0n));
  builder.addAccount(TWO, digits(5n), digits(0n), digits(0n));
  assert.deepEqual(builder.values.accounts, [
    [ONE, undefined],
    [TWO, { balance: 5n, nonce: 0n, codeHash: EMPTY_CODE_HASH }],
  ]);
});

test("slots have no leading zero bytes", () => {
  const builder = new StateValuesBuilder();
  const values = [0n, 1n, 0xffn, 0x100n, 2n ** 255n];
  for (const [index, value] of values.entries()) {
    builder.addSlot(ONE, hashOf(index), digits(value));
  }
  assert.deepEqual(
    builder.values.slots.map(([, , bytes]) => Buffer.from(bytes).toString("hex")),
    ["", "01", "ff", "0100", `80${"00".repeat(31)}`],
  );
});
