import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatData, ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { numberBytes } from "../../../src/ethereum/rlp.ts";
import { unpackWrites } from "../../../src/state/sources/unpackWrites.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { codeDigits, writtenValues } from "../../../src/state/store/writtenValues.ts";
import type { AccountWrites, BlockWrites } from "../../../src/state/writeSet.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(formatData);
const written = <Value>(value: fc.Arbitrary<Value>) => fc.oneof(value, fc.constant("unknown" as const));
const word = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const account = fc.record(
  {
    balance: written(word),
    nonce: written(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
    code: written(fc.uint8Array({ maxLength: 10_000 })),
    codeHash: bytes(32),
    otherSlots: fc.constantFrom("cleared" as const, "unknown" as const),
    slots: fc.array(fc.tuple(bytes(32), written(word.map(numberBytes)))).map((entries) => new Map(entries)),
  },
  { requiredKeys: ["slots"] },
);

/** Arrays of another class, with other memory, are equal if their bytes are. A hash without a code is not packed. */
const plain = (accounts: BlockWrites): unknown =>
  [...accounts].map(([address, { code, codeHash, slots, ...rest }]) => ({
    address,
    ...rest,
    ...(code === undefined ? {} : { code: code === "unknown" ? code : formatData(code), codeHash }),
    slots: [...slots].map(([slot, value]) => [slot, value === "unknown" ? value : formatData(value)]),
  }));

test("unpacked writes are equal to those that were packed", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(bytes(20), account)), (entries) => {
      const accounts = new Map<`0x${string}`, AccountWrites>(entries);
      assert.deepEqual(plain(unpackWrites(packWrites(accounts))), plain(accounts));
    }),
    { numRuns: 200 },
  );
});

/** The values of one account, computed without packing. */
const valuesOf = (writes: AccountWrites): readonly (readonly [string, string | undefined])[] => {
  const { balance, nonce, code, codeHash, otherSlots, slots } = writes;
  const digits = (value: bigint | "unknown"): string | undefined =>
    value === "unknown" ? undefined : value.toString(16).padStart(64, "0");
  const hash = code === undefined || code === "unknown" ? codeHash : keccak256Hex(code);
  return [
    ...(otherSlots === undefined ? [] : [["storage", otherSlots === "cleared" ? digits(0n) : undefined] as const]),
    ...(balance === undefined ? [] : [["balance", digits(balance)] as const]),
    ...(nonce === undefined ? [] : [["nonce", digits(nonce)] as const]),
    ...(code === undefined ? [] : [["code", hash === EMPTY_CODE_HASH ? digits(0n) : hash?.slice(2)] as const]),
    ...[...slots].map(([slot, value]) => {
      const number = value === "unknown" ? value : BigInt(`0x0${value.toHex()}`);
      return [slot, digits(number)] as const;
    }),
  ];
};

test("the values that are read from packed writes are those of the writes", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(bytes(20), account)), (entries) => {
      const accounts = new Map<`0x${string}`, AccountWrites>(
        entries.map(([address, { codeHash: _, ...writes }]) => [address, writes]),
      );
      const packed = packWrites(accounts);
      const read = [...writtenValues({ packed }, (code) => codeDigits(code))].map(({ key, value }) => [
        key.address,
        key.slot ?? key.field,
        value,
      ]);
      const expected = [...accounts].flatMap(([address, writes]) =>
        valuesOf(writes).map(([name, value]) => [address, name, value]),
      );
      assert.deepEqual(read, expected);
    }),
    { numRuns: 200 },
  );
});

test("packed writes that end early are not read", () => {
  const packed = packWrites(new Map([[ZERO_ADDRESS, { slots: new Map([[ZERO_HASH, Uint8Array.of(1, 2)]]) }]]));
  for (let length = 0; length < packed.length; length++) {
    const cut = packed.subarray(0, length);
    assert.throws(() => [...writtenValues({ packed: cut }, () => "")], RangeError);
  }
});
