import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatData } from "../../../src/ethereum/hex.ts";
import { numberBytes } from "../../../src/ethereum/rlp.ts";
import { packWrites, unpackWrites } from "../../../src/state/sources/packedWrites.ts";
import type { AccountWrites } from "../../../src/state/writeSet.ts";
import { runAll } from "../../support/builders/runAll.ts";

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

/** Arrays of another class, with other memory, are equal if their bytes are. */
const plain = (accounts: ReadonlyMap<string, AccountWrites>): unknown =>
  [...accounts].map(([address, { code, slots, ...rest }]) => ({
    address,
    ...rest,
    ...(code === undefined ? {} : { code: code === "unknown" ? code : formatData(code) }),
    slots: [...slots].map(([slot, value]) => [slot, value === "unknown" ? value : formatData(value)]),
  }));

test("unpacked writes are equal to those that were packed", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(bytes(20), account)), (entries) => {
      const accounts = new Map<`0x${string}`, AccountWrites>(entries);
      assert.deepEqual(plain(runAll(unpackWrites(packWrites(accounts)))), plain(accounts));
    }),
    { numRuns: 200 },
  );
});
