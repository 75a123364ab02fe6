import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { readProvenAccount } from "../../src/verification/provenAccount.ts";
import { slotOf } from "../support/builders/provenState.ts";

const account = { balance: "0x1", nonce: "0x2", codeHash: EMPTY_CODE_HASH };

test("slots are found by their keys, in whatever order and form a node returns them", () => {
  const { slot } = readProvenAccount({
    ...account,
    storageProof: [
      { key: "0x2", value: "0x5" },
      { key: slotOf(1), value: "0x7" },
    ],
  });
  assert.deepEqual([slot(slotOf(1)), slot(slotOf(2))], [7n, 5n]);
  assert.throws(() => slot(slotOf(3)), RangeError);
});

test("an absent account proves that all slots are zero", () => {
  const { slot, balance, codeHash } = readProvenAccount({
    ...account,
    balance: "0x",
    codeHash: `0x${"0".repeat(64)}`,
    storageProof: [],
  });
  assert.deepEqual([slot(slotOf(1)), balance, codeHash], [0n, 0n, EMPTY_CODE_HASH]);
});
