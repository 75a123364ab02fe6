import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY_CODE_HASH } from "../../../src/ethereum/keccak.ts";
import { type FoundValue, singleKeys, stateValuesOf } from "../../../src/state/fetch/foundValues.ts";
import { keyName } from "../../../src/state/stateKey.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { addressOf } from "../../support/builders/stateModel.ts";

const digits = (value: bigint): string => value.toString(16).padStart(64, "0");
const [ONE, TWO] = [addressOf(0), addressOf(1)];

const foundOf = (values: readonly Pick<FoundValue, "key" | "value">[]): ReadonlyMap<string, FoundValue> =>
  new Map(values.map(({ key, value }) => [keyName(key), { key, value, code: undefined }]));

test("an empty account does not exist, and one with a balance has the hash of no code", () => {
  const keys = singleKeys({ accounts: [ONE, TWO], slots: [], blockHashes: [] });
  const isRich = ({ field, address }: (typeof keys)[number]) => address === TWO && field === "balance";
  const found = foundOf(keys.map((key) => ({ key, value: digits(isRich(key) ? 5n : 0n) })));
  assert.deepEqual(stateValuesOf(found).accounts, [
    [ONE, undefined],
    [TWO, { balance: 5n, nonce: 0n, codeHash: EMPTY_CODE_HASH }],
  ]);
});

test("slots have no leading zero bytes", () => {
  const values = [0n, 1n, 0xffn, 0x100n, 2n ** 255n];
  const slots = values.map((_, index) => [ONE, hashOf(index)] as const);
  const keys = singleKeys({ accounts: [], slots, blockHashes: [] });
  const found = foundOf(keys.map((key, index) => ({ key, value: digits(values[index] ?? 0n) })));
  assert.deepEqual(
    stateValuesOf(found).slots.map(([, , bytes]) => Buffer.from(bytes).toString("hex")),
    ["", "01", "ff", "0100", `80${"00".repeat(31)}`],
  );
});
