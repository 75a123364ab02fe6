import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpForks } from "../../src/ethereum/chainForks.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import { bytes, CODE, forkOf, haltOf, runCode, simulateCall, word } from "./simulateCall.ts";

test("exceptional halts have geth's texts", async () => {
  assert.equal(await runCode("600756"), "invalid jump destination");
  assert.equal(await runCode("6001600757"), "invalid jump destination");
  assert.equal(await runCode(`7f${"ff".repeat(32)}56`), "invalid jump destination");
  assert.equal(await runCode("01"), "stack underflow (0 <=> 2)");
  assert.equal(await runCode("5b5f600056"), "stack limit reached 1024 (1023)");
  assert.equal(await runCode("5b600056"), "out of gas");
  // RETURNDATACOPY beyond the return data.
  assert.equal(await runCode("60015f5f3e"), "return data out of bounds");
});

test("SSTORE and calls without gas have geth's texts", async () => {
  const runWith = (code: string, gas: number, fork = forkOf("osaka")) =>
    haltOf({ to: CODE, gas: `0x${(21_000 + gas).toString(16)}` }, { [CODE]: { code: `0x${code}` } }, fork);
  // 4 gas for the stack, then 2,300 for SSTORE.
  assert.equal(await runWith("60015f55", 2_305), "out of gas: not enough gas for reentrancy sentry");
  assert.equal(await runWith("60015f55", 2_306), "out of gas");
  const call = `5f5f5f5f5f73${bytes(20, "77")}5af1`;
  // 15 gas for the stack, then 2,600 for a cold account.
  assert.equal(await runWith(call, 2_000), "out of gas: out of gas");
  assert.equal(await runWith(call, 100), "out of gas");
});

/** Each measured on go-ethereum 1.17.10. */
test("a price that cannot be paid has geth's text", async () => {
  const runWith = (code: string, gas: number, fork = forkOf("osaka")) =>
    haltOf(
      { to: CODE, gas: `0x${(21_000 + gas).toString(16)}` },
      { [CODE]: { code: `0x${code}`, balance: "0x9" } },
      fork,
    );
  const wrapped = "out of gas: out of gas";
  const cold = bytes(20, "77");
  // A value, memory, or a call of the account itself: no access is cold.
  for (const operands of ["5f5f5f5f600130", "6120005f5f5f5f30"]) {
    assert.equal(await runWith(`${operands}5af1`, 113), "out of gas");
    assert.equal(await runWith(`${operands}5af1`, 600), wrapped);
    assert.equal(await runWith(`${operands}5af1`, 600, forkOf("cancun")), "out of gas");
  }
  // A new account costs 25,000.
  assert.equal(await runWith(`5f5f5f5f600173${cold}5af1`, 12_000), wrapped);
  assert.equal(await runWith("64ffffffffff5f5f5f5f305af1", 600), "out of gas: gas uint64 overflow");
  assert.equal(await runWith("64ffffffffff5f5f5f5f305af1", 60), "out of gas");
  assert.equal(await runWith(`73${cold}ff`, 5_100), wrapped);
  assert.equal(await runWith(`73${cold}ff`, 4_000), "out of gas");
  assert.equal(await runWith(`73${cold}ff`, 30_000), "out of gas");
  const size = "max initcode size exceeded: code size 49153 limit 49152";
  assert.equal(await runWith("61c0015f5ff0", 60_000), `out of gas: ${size}`);
  assert.equal(await runWith("61c0015f5ff0", 30_000), "out of gas");
});

test("code that is too large has geth's text, after its price", async () => {
  const create = (input: string, gas: number) => haltOf({ input: `0x${input}`, gas: `0x${gas.toString(16)}` });
  assert.equal(await create("6160015ff3", 9_000_000), "max code size exceeded: code size 24577 limit 24576");
  assert.equal(await create("6160015ff3", 4_900_000), "contract creation code storage out of gas");
  assert.equal(await create("60ef5f536160015ff3", 9_000_000), "invalid code: must not begin with 0xef");
});

test("a memory size above geth's limit is a gas overflow", async () => {
  const max = `7f${"ff".repeat(32)}`;
  const above64Bits = "680fffffffffffffffff";
  const below64Bits = "67ffffffffffffffff";
  for (const [code, message] of [
    // Offsets of MLOAD, KECCAK256, LOG0, RETURN and CALL's arguments.
    [`${max}51`, "gas uint64 overflow"],
    [`6001${max}20`, "gas uint64 overflow"],
    [`${above64Bits}5fa0`, "gas uint64 overflow"],
    [`6001${below64Bits}f3`, "gas uint64 overflow"],
    [`5f5f${max}5f5f5f5af1`, "gas uint64 overflow"],
    [`65ffffffffffff51`, "out of gas: gas uint64 overflow"],
    [`5f${max}a0`, "success"],
    [`6401ffffffff51`, "out of gas"],
  ] as const) {
    if (message === "success") {
      const { status } = await simulateCall({ to: CODE }, { [CODE]: { code: `0x${code}` } });
      assert.equal(status, "0x1", code);
    } else {
      assert.equal(await runCode(code), message, code);
    }
  }
});

test("code that cannot be stored has an error of its own", async () => {
  // Returns 0x400 zero bytes, which cost 204,800 to store; the same, beginning with 0xef.
  assert.equal(await haltOf({ input: "0x6104005ff3", gas: "0x10000" }), "contract creation code storage out of gas");
  assert.equal(
    await haltOf({ input: "0x60ef5f536104005ff3", gas: "0x10000" }),
    "invalid code: must not begin with 0xef",
  );
  assert.equal(await haltOf({ input: "0x60ef5f5360015ff3" }), "invalid code: must not begin with 0xef");
  assert.equal(
    await haltOf({ input: "0x6160015ff3", gas: "0x1000000" }),
    "max code size exceeded: code size 24577 limit 24576",
  );
});

test("undefined opcodes have geth's names", async () => {
  for (const [opcode, name] of [
    ["0c", "opcode 0xc not defined"],
    ["ef", "opcode 0xef not defined"],
    ["fe", "INVALID"],
    ["1e", "CLZ"],
    ["4b", "SLOTNUM"],
    ["e6", "DUPN"],
    ["fb", "EXTSTATICCALL"],
  ]) {
    assert.equal(await runCode(opcode ?? ""), `invalid opcode: ${name}`);
  }
  assert.equal(await runCode("5f", forkOf("paris")), "invalid opcode: PUSH0");
});

const precompile = (number: number): Address => `0x${number.toString(16).padStart(40, "0")}`;

const NOT_ON_BLS = `${word(0).slice(2)}${word(1).slice(2)}${word(0).slice(2)}${word(1).slice(2)}`;

/** Points of the curves that are not in the groups of prime order. */
const fields = (...values: readonly bigint[]): string =>
  values.map((value) => value.toString(16).padStart(128, "0")).join("");

const G1_OUTSIDE = fields(
  0x4n,
  0xa989badd40d6212b33cffc3f3763e9bc760f988c9926b26da9dd85e928483446346b8ed00e1de5d5ea93e354abe706cn,
);

const TOO_LONG = "one or more of base/exponent/modulus length exceeded 1024 bytes";

/** The generator of G2 (EIP-197), imaginary parts first. */
const BN_G2 = [
  0x198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2n,
  0x1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6edn,
  0x090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975bn,
  0x12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daan,
]
  .map((value) => word(value).slice(2))
  .join("");

/** On the twist of bn254, and not in the group of prime order. */
const BN_G2_OUTSIDE = [
  0x0n,
  0x1n,
  0xd1271953ed9ea0836846e70a1934187998c7f790cb4d7511b7f8da82de048a4n,
  0x2869111d5381f072f8e2728fdb825a51aadd70e52c9830e9ab4b871c0531f1bbn,
]
  .map((value) => word(value).slice(2))
  .join("");

const G2_OUTSIDE = fields(
  0x2n,
  0x0n,
  0x18c6b864ae17dc9da64203ffefb966306425a7bc6aeb7c75247438372716284a4173830420cd476ba1a365b95bfcec38n,
  0x172e93db764a8400a7d5071b6b6f5de0da2f0f4a063119abca014006b7c40a2cfe291a1924e65db0d6d0fcfbf3bf3d5cn,
);

test("precompiles halt with geth's texts", async () => {
  const refuse = (number: number, input: string, options = forkOf("osaka")) =>
    haltOf({ to: precompile(number), input: `0x${input}` }, {}, options);
  const point = `${word(1).slice(2)}${word(1).slice(2)}`;
  const outside = `${bytes(32, "ff")}${word(1).slice(2)}`;
  for (const [number, input, message] of [
    [0x05, `${word(1025).slice(2)}${word(1).slice(2)}${word(1).slice(2)}`, TOO_LONG],
    [0x05, bytes(96, "ff"), "out of gas"],
    // geth charges the gas first: 2 * 725^2 is more than the call has, and 2 * 129^2 is not.
    [0x05, `${word(5_800).slice(2)}${word(1).slice(2)}${word(1).slice(2)}`, "out of gas"],
    [0x05, `${word(1).slice(2)}${word(1_025).slice(2)}${word(1).slice(2)}`, TOO_LONG],
    [0x05, `${word(1).slice(2)}${word(100_000).slice(2)}${word(1).slice(2)}`, "out of gas"],
    [0x06, point, "point is not on curve"],
    // The first wrong point decides.
    [0x06, `${point}${outside}`, "point is not on curve"],
    [0x06, `${outside}${point}`, "invalid fp.Element encoding"],
    [0x06, bytes(64) + point, "point is not on curve"],
    [0x08, `${point}${bytes(96)}${bytes(32, "ff")}`, "point is not on curve"],
    [0x08, `${bytes(64)}${BN_G2}${bytes(64)}${bytes(96)}${word(1).slice(2)}`, "point is not on curve"],
    [0x08, `${bytes(64)}${BN_G2_OUTSIDE}`, "point is not in correct subgroup"],
    [0x06, outside, "invalid fp.Element encoding"],
    [0x07, point, "point is not on curve"],
    [0x08, bytes(191), "bad elliptic curve pairing size"],
    [0x08, `${point}${bytes(128)}`, "point is not on curve"],
    [0x09, bytes(212), "invalid input length"],
    [0x09, `${bytes(212)}02`, "invalid final flag"],
    [0x0a, bytes(191), "invalid input length"],
    [0x0a, bytes(192), "mismatched versioned hash"],
    [0x0b, bytes(255), "invalid input length"],
    [0x0b, `01${bytes(255)}`, "invalid field element top bytes"],
    [0x0b, `${bytes(16)}${bytes(48, "ff")}${bytes(192)}`, "invalid fp.Element encoding"],
    [0x0b, `${NOT_ON_BLS}${bytes(128)}`, "invalid point: not on curve"],
    [0x0c, "", "invalid input length"],
    [0x0c, `${G1_OUTSIDE}${bytes(32)}`, "g1 point is not on correct subgroup"],
    [0x0e, `${G2_OUTSIDE}${bytes(32)}`, "g2 point is not on correct subgroup"],
    [0x0f, `${bytes(128)}${G2_OUTSIDE}`, "g2 point is not on correct subgroup"],
    [0x0e, bytes(287), "invalid input length"],
    [0x0f, bytes(383), "invalid input length"],
    [0x10, bytes(64, "ff"), "invalid field element top bytes"],
  ] as const) {
    assert.equal(await refuse(number, input), message, `precompile ${number}: ${message}`);
  }
  const karst = { forks: createOpForks(10n, { jovian: 0n, karst: 0n }) };
  assert.equal(await refuse(0x08, bytes(57_600 + 192), karst), "bad elliptic curve pairing input size");
});
