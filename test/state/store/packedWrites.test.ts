import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatData, ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { numberBytes } from "../../../src/ethereum/rlp.ts";
import { keyAt } from "../../../src/state/store/keyEncoder.ts";
import { DamagedRows, readRows } from "../../../src/state/store/packedRows.ts";
import { packWrites, unpackWrites } from "../../../src/state/store/packedWrites.ts";
import type { AccountWrites, BlockWrites } from "../../../src/state/writeSet.ts";
import { MalformedField } from "../../../src/verification/jsonFields.ts";

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

/** The hash of a code is not that of another one. */
const accounts = fc
  .array(fc.tuple(bytes(20), account))
  .map(
    (entries): BlockWrites =>
      new Map(
        entries.map(([address, { codeHash, ...rest }]) => [
          address,
          rest.code === "unknown" && codeHash !== undefined ? { ...rest, codeHash } : rest,
        ]),
      ),
  );

/** Arrays of another class are equal if their bytes are. A hash without a code is not packed, and an account needs a write. */
const plain = (accounts: BlockWrites): unknown =>
  [...accounts].flatMap(([address, { code, codeHash, slots, ...rest }]) => {
    const own = code instanceof Uint8Array && codeHash === undefined ? keccak256Hex(code) : codeHash;
    const isEmpty = own === EMPTY_CODE_HASH;
    const writes = {
      ...rest,
      ...(code === undefined
        ? {}
        : { code: code === "unknown" && !isEmpty ? code : formatData(code as Uint8Array), own }),
      slots: [...slots].map(([slot, value]) => [slot, value === "unknown" ? value : formatData(value)]),
    };
    return Object.keys(writes).length === 1 && slots.size === 0 ? [] : [{ address, ...writes }];
  });

test("unpacked writes are equal to those that were packed", () => {
  fc.assert(
    fc.property(accounts, (writes) => {
      assert.deepEqual(plain(unpackWrites(packWrites(writes))), plain(writes));
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
    fc.property(accounts, (writes) => {
      const read = [...readRows(packWrites(writes))].flatMap((row) => {
        if (row.kind === "bytes" || row.kind === "call") {
          return [];
        }
        const { address, field, slot } = keyAt(row.kind, row.place);
        const { bytes: own, value } = row.place;
        return [[address, slot ?? field, row.isEnded ? undefined : own.toString("hex", value, value + 32)]];
      });
      const expected = [...writes].flatMap(([address, own]) =>
        valuesOf(own).map(([name, value]) => [address, name, value]),
      );
      assert.deepEqual(read, expected);
    }),
    { numRuns: 200 },
  );
});

const SLOT = { slots: new Map([[ZERO_HASH, Uint8Array.of(1, 2)]]) };

test("packed writes that end early are not read", () => {
  const packed = packWrites(new Map([[ZERO_ADDRESS, SLOT]]));
  for (let length = 0; length < packed.length; length++) {
    assert.throws(() => [...readRows(packed.subarray(0, length))], DamagedRows);
  }
});

test("a value of more than 32 bytes is not packed", () => {
  assert.throws(() => packWrites(new Map([[ZERO_ADDRESS, { balance: 2n ** 256n, slots: new Map() }]])), MalformedField);
});
