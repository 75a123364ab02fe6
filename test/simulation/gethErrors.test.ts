import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedForks } from "../../src/ethereum/ethereumForks.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { createOpForks } from "../../src/ethereum/opForks.ts";
import type { EthereumFork } from "../../src/ethereum/rules.ts";
import type { SimulationInput } from "../../src/simulation/runSimulation.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { simulateOne } from "../support/builders/plainSimulation.ts";

const SENDER: Address = `0x${"aa".repeat(20)}`;
const CODE: Address = `0x${"cc".repeat(20)}`;
const LOGGER: Address = `0x${"dd".repeat(20)}`;
const SENDER_CHECKSUMMED = "0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa";
const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_NONCE = "0xffffffffffffffff";
const GAS = "0x100000";
const hex = (value: bigint): string => `0x${value.toString(16)}`;
const word = (value: bigint | number): Hash => `0x${value.toString(16).padStart(64, "0")}`;

const forkOf = (fork: EthereumFork): Partial<SimulationInput> => ({ forks: fixedForks(1n, fork) });

/** Simulates one call, and returns its result. */
const callOf = async (call: object, states: object = {}, options: Partial<SimulationInput> = {}, rest: object = {}) => {
  const block = await simulateOne({ stateOverrides: states, calls: [{ gas: GAS, ...call }] }, rest, options);
  const [result] = block.calls;
  assert.ok(result);
  return result;
};
const haltOf = async (call: object, states: object = {}, options: Partial<SimulationInput> = {}) => {
  const { status, error } = await callOf(call, states, options);
  assert.deepEqual([status, error?.code], ["0x0", -32015]);
  return error?.message;
};
const runCode = (code: string, options: Partial<SimulationInput> = {}) =>
  haltOf({ to: CODE }, { [CODE]: { code: `0x${code}` } }, options);

const CALL_LOGGER = `5f5f5f5f5f73${LOGGER.slice(2)}5af150`;

test("log indices count the logs of failed frames", async () => {
  // Two logs, then a revert.
  const logger = { [LOGGER]: { code: "0x5f5fa05f5fa05f5ffd" } };
  // A log, three failing calls, a log.
  const code = `0x5f5fa0${CALL_LOGGER.repeat(3)}5f5fa000`;
  const block = await simulateOne({
    stateOverrides: { ...logger, [CODE]: { code } },
    calls: [{ to: CODE }, { to: LOGGER }, { to: CODE }],
  });
  const indices = block.calls.map(({ logs }) => logs.map(({ logIndex }) => Number(logIndex)));
  assert.deepEqual(indices, [[0, 7], [], [10, 17]]);
});

test("log indices count failed and rejected transfers if transfers are traced", async () => {
  const send = (value: string) => `5f5f5f5f60${value}73${LOGGER.slice(2)}5af150`;
  const states = {
    [SENDER]: { balance: "0x9" },
    [LOGGER]: { code: "0x5f5ffd" },
    [CODE]: { code: `0x${send("01")}${send("63")}5f5fa000` },
  };
  const call = { from: SENDER, to: CODE, value: "0x5" };
  const traced = await callOf(call, states, {}, { traceTransfers: true });
  assert.deepEqual(
    traced.logs.map(({ logIndex }) => Number(logIndex)),
    [0, 3],
  );
  const plain = await callOf(call, states);
  assert.deepEqual(
    plain.logs.map(({ logIndex }) => Number(logIndex)),
    [0],
  );
});

test("transfers of calls that fail at once use an index", async () => {
  const failing = { from: SENDER, to: CODE, value: "0x1", gas: "0x5208" };
  const block = await simulateOne(
    {
      stateOverrides: { [SENDER]: { balance: "0x9" }, [CODE]: { code: "0x5b" } },
      calls: [...Array(6).fill(failing), { from: SENDER, to: LOGGER, value: "0x1", gas: "0x5208" }],
    },
    { traceTransfers: true },
  );
  assert.deepEqual(
    block.calls.map(({ logs }) => logs.map(({ logIndex }) => logIndex)),
    [[], [], [], [], [], [], ["0x6"]],
  );
});

test("a creation from the highest nonce is an error of the call, and changes no state", async () => {
  const block = await simulateOne({
    stateOverrides: { [SENDER]: { nonce: MAX_NONCE, balance: "0x9" } },
    calls: [
      { from: SENDER, input: "0x00", value: "0x5", gas: GAS },
      { from: SENDER, to: CODE, value: "0x9" },
    ],
  });
  const [creation, transfer] = block.calls;
  assert.deepEqual(creation?.error, { code: -32015, message: "nonce uint64 overflow" });
  assert.deepEqual([creation?.status, creation?.gasUsed], ["0x0", hex(53_006n)]);
  assert.equal(transfer?.status, "0x1");
  // With validation, the request fails, as in geth.
  await assert.rejects(
    simulateOne(
      { stateOverrides: { [SENDER]: { nonce: MAX_NONCE } }, calls: [{ from: SENDER, input: "0x00" }] },
      { validation: true },
    ),
    { code: -32603 },
  );
});

test("a cost above 256 bits exceeds every balance", async () => {
  const states = { [SENDER]: { balance: hex(MAX_UINT256) } };
  const overflow = {
    code: -38014,
    message: `err: insufficient funds for gas * price + value: address ${SENDER_CHECKSUMMED} required balance exceeds 256 bits (supplied gas ${Number(GAS)})`,
  };
  await assert.rejects(callOf({ from: SENDER, to: CODE, maxFeePerGas: hex(MAX_UINT256) }, states), overflow);
  await assert.rejects(
    callOf({ from: SENDER, to: CODE, maxFeePerGas: "0x1", value: hex(MAX_UINT256) }, states),
    overflow,
  );
});

test("a balance wraps at 256 bits", async () => {
  const states = {
    [SENDER]: { balance: "0x9" },
    [CODE]: { balance: hex(MAX_UINT256), code: "0x475f5260205ff3" },
  };
  const { status, returnData } = await callOf({ from: SENDER, to: CODE, value: "0x3" }, states);
  assert.deepEqual([status, returnData], ["0x1", word(2)]);
});

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
      const { status } = await callOf({ to: CODE }, { [CODE]: { code: `0x${code}` } });
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
  assert.equal(await haltOf({ input: "0x6160015ff3", gas: "0x1000000" }), "max code size exceeded");
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
const bytes = (length: number, fill = "00"): string => fill.repeat(length);
const NOT_ON_BLS = `${word(0).slice(2)}${word(1).slice(2)}${word(0).slice(2)}${word(1).slice(2)}`;
/** Points of the curves that are not in the groups of prime order. */
const fields = (...values: readonly bigint[]): string =>
  values.map((value) => value.toString(16).padStart(128, "0")).join("");
const G1_OUTSIDE = fields(
  0x4n,
  0xa989badd40d6212b33cffc3f3763e9bc760f988c9926b26da9dd85e928483446346b8ed00e1de5d5ea93e354abe706cn,
);
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
    [
      0x05,
      `${word(1025).slice(2)}${word(1).slice(2)}${word(1).slice(2)}`,
      "one or more of base/exponent/modulus length exceeded 1024 bytes",
    ],
    [0x05, bytes(96, "ff"), "out of gas"],
    [0x06, point, "point is not on curve"],
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

test("fields of blobs and authorizations are checked for every transaction type", async () => {
  const blob = `0x01${bytes(31, "22")}`;
  const authorization = { chainId: "0x1", address: CODE, nonce: "0x0", yParity: "0x0", r: "0x1", s: "0x1" };
  const sender = `(sender ${SENDER_CHECKSUMMED})`;
  const prices = [{}, { gasPrice: "0x0" }, { maxFeePerGas: "0x0" }];
  for (const price of prices) {
    for (const [fields, message] of [
      [{ to: CODE, blobVersionedHashes: [] }, "blob transaction missing blob hashes"],
      [{ blobVersionedHashes: [blob], input: "0x00" }, "blob transaction of type create"],
      [{ to: CODE, blobVersionedHashes: [word(1)] }, "blob 0 has invalid hash version"],
      [{ to: CODE, blobVersionedHashes: Array(7).fill(blob) }, "blob transaction has too many blobs (max 6)"],
      [{ to: CODE, authorizationList: [] }, `EIP-7702 transaction with empty auth list ${sender}`],
      [
        { authorizationList: [authorization], input: "0x00" },
        `EIP-7702 transaction cannot be used to create contract ${sender}`,
      ],
      [
        { to: CODE, authorizationList: [authorization], blobVersionedHashes: [] },
        "blob transaction missing blob hashes",
      ],
      [
        { to: CODE, authorizationList: [], blobVersionedHashes: [blob] },
        `EIP-7702 transaction with empty auth list ${sender}`,
      ],
    ] as const) {
      await assert.rejects(callOf({ from: SENDER, ...fields, ...price }, {}, forkOf("osaka")), {
        code: -32603,
        message: `err: ${message} (supplied gas ${Number(GAS)})`,
      });
    }
    const both = { from: SENDER, to: CODE, authorizationList: [authorization], blobVersionedHashes: [blob], ...price };
    assert.equal((await callOf(both, {}, forkOf("osaka"))).status, "0x1");
  }
});

test("a call before London has type 0", async () => {
  const block = await simulateOne(
    { calls: [{ from: SENDER, to: CODE }] },
    { returnFullTransactions: true },
    { ...forkOf("berlin"), parent: { ...PARENT, baseFeePerGas: undefined } },
  );
  const [transaction] = block.transactions as [{ type: string; gasPrice: string }];
  assert.deepEqual([transaction.type, transaction.gasPrice], ["0x0", "0x0"]);
  assert.equal("baseFeePerGas" in block, false);
});

test("a block number above 2^64 has geth's error codes", async () => {
  const at = (number: bigint) => simulateOne({ blockOverrides: { number: hex(number) } });
  for (const number of [2n ** 64n, MAX_UINT256]) {
    await assert.rejects(at(number), { code: -38026, message: "too many blocks" });
  }
  await assert.rejects(at(MAX_UINT256 + 1n), { code: -32602 });
});
