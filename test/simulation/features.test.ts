import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { NotExecutableError } from "../../src/evm/executionErrors.ts";
import { simulateOne as one, simulate } from "./plainSimulation.ts";

const SENDER: Address = `0x${"aa".repeat(20)}`;
const CODE: Address = `0x${"cc".repeat(20)}`;
const OTHER: Address = `0x${"dd".repeat(20)}`;
const ETHER: Address = `0x${"ee".repeat(20)}`;
const word = (value: bigint | number): Hash => `0x${value.toString(16).padStart(64, "0")}`;
/** Code that returns the value that `opcodes` push. */
const returnsValueOf = (opcodes: string) => ({ [CODE]: { code: `0x${opcodes}5f5260205ff3` } });

test("opcodes read the overridden block", async () => {
  const overrides = {
    blobBaseFee: "0x9",
    prevRandao: word(5),
    feeRecipient: OTHER,
    gasLimit: "0x100000",
    baseFeePerGas: "0x3",
  };
  const see = async (opcode: string) =>
    (await one({ blockOverrides: overrides, stateOverrides: returnsValueOf(opcode), calls: [{ to: CODE }] })).calls[0]
      ?.returnData;
  assert.equal(await see("4a"), word(9));
  assert.equal(await see("44"), word(5));
  assert.equal(await see("41"), `0x${"0".repeat(24)}${"dd".repeat(20)}`);
  assert.equal(await see("45"), word(0x100000));
  assert.equal(await see("48"), word(3));
});

test("withdrawals are credited and listed, and the beacon root is stored as in EIP-4788", async () => {
  const withdrawals = [{ index: "0x1", validatorIndex: "0x2", address: OTHER, amount: "0x3" }];
  const beaconRoot = word(77);
  const [first, second] = await simulate({
    blockStateCalls: [
      { blockOverrides: { withdrawals, beaconRoot } },
      { stateOverrides: returnsValueOf(`73${OTHER.slice(2)}31`), calls: [{ to: CODE }] },
    ],
  });
  assert.deepEqual(first?.withdrawals, withdrawals);
  assert.equal(first?.parentBeaconBlockRoot, beaconRoot);
  assert.equal(second?.calls[0]?.returnData, word(3_000_000_000n));
});

/** An account with a signed authorization, a call that touches the account, and one with the authorization. */
const createAuthority = async () => {
  const authority = privateKeyToAccount(`0x${"42".repeat(32)}`);
  const signed = await authority.signAuthorization({ chainId: 1, contractAddress: OTHER, nonce: 0 });
  const [r, s] = [signed.r, signed.s].map((part) => `0x${BigInt(part).toString(16)}`);
  const authorization = { chainId: "0x1", address: OTHER, nonce: "0x0", yParity: `0x${signed.yParity}`, r, s };
  const touch = { from: SENDER, to: authority.address };
  const authorize = { from: SENDER, to: ETHER, authorizationList: [authorization] };
  return { authority, touch, authorize };
};

/** Gas of each call, measured on go-ethereum 1.17.10. An authority that exists has a refund (EIP-7702). */
test("an authority that calls of earlier blocks only touched does not exist", async () => {
  const { authority, touch, authorize } = await createAuthority();
  const calling = { [CODE]: { code: `0x5f5f5f5f5f73${authority.address.slice(2)}5af15000` } };
  const pay = { stateOverrides: { [SENDER]: { balance: "0x1" } }, calls: [{ ...touch, value: "0x1" }] };
  for (const [blockStateCalls, gas] of [
    [[{ calls: [authorize] }], [[46_000]]],
    [[{ calls: [touch, authorize] }], [[21_000, 46_000]]],
    [
      [{ calls: [touch] }, { calls: [authorize] }],
      [[21_000], [46_000]],
    ],
    [
      [{ calls: [touch] }, {}, { calls: [touch, authorize] }],
      [[21_000], [], [21_000, 46_000]],
    ],
    [
      [{ stateOverrides: calling, calls: [{ to: CODE }] }, { calls: [authorize] }],
      [[23_617], [46_000]],
    ],
    [
      [pay, { calls: [authorize] }],
      [[21_000], [36_800]],
    ],
  ] as const) {
    const blocks = await simulate({ blockStateCalls });
    assert.deepEqual(
      blocks.map(({ calls }) => calls.map(({ gasUsed }) => Number(gasUsed))),
      gas,
    );
  }
});

/** geth's setters of an override create the account object, and an empty one is not deleted before a transaction touches it. */
test("an authority with an override exists until a call touches it", async () => {
  const { authority, touch, authorize } = await createAuthority();
  for (const [override, gas] of [
    [{ balance: "0x0" }, 36_800],
    [{ nonce: "0x0" }, 36_800],
    [{ code: "0x" }, 36_800],
    [{ state: {} }, 36_800],
    [{ state: { [word(1)]: word(0) } }, 36_800],
    [{ stateDiff: { [word(1)]: word(0) } }, 36_800],
    [{ stateDiff: {} }, 46_000],
    [{}, 46_000],
  ] as const) {
    const stateOverrides = { [authority.address]: override };
    const gasOf = async (...blockStateCalls: readonly unknown[]) =>
      (await simulate({ blockStateCalls })).flatMap(({ calls }) => calls.map(({ gasUsed }) => Number(gasUsed)));
    const name = JSON.stringify(override);
    assert.deepEqual(await gasOf({ stateOverrides, calls: [authorize] }), [gas], name);
    assert.deepEqual(await gasOf({ stateOverrides }, { calls: [authorize] }), [gas], `${name}, next block`);
    assert.deepEqual(await gasOf({ stateOverrides, calls: [touch, authorize] }), [21_000, 46_000], `${name}, touched`);
  }
});

test("code reads the hashes of a blob transaction, and its blob gas is counted", async () => {
  const blobVersionedHashes = [`0x01${"22".repeat(31)}`];
  const block = await one(
    { stateOverrides: returnsValueOf("5f49"), calls: [{ from: SENDER, to: CODE, blobVersionedHashes }] },
    { returnFullTransactions: true },
  );
  assert.equal(block.calls[0]?.returnData, blobVersionedHashes[0]);
  assert.equal(block.blobGasUsed, "0x20000");
  const [transaction] = block.transactions as [{ type: string; blobVersionedHashes: string[] }];
  assert.deepEqual([transaction.type, transaction.blobVersionedHashes], ["0x3", blobVersionedHashes]);
  await assert.rejects(one({ calls: [{ to: CODE, blobVersionedHashes: [] }] }), {
    code: -32603,
    message: "err: blob transaction missing blob hashes (supplied gas 50000000)",
  });
});

test("traced transfers are listed among the logs in order, without failed ones", async () => {
  // log0; call OTHER with value 1; log0.
  const code = `5f5fa05f5f5f5f600173${OTHER.slice(2)}5af1505f5fa000`;
  const payload = { stateOverrides: { [CODE]: { code: `0x${code}` }, [SENDER]: { balance: "0x9" } } };
  const block = await one({ ...payload, calls: [{ from: SENDER, to: CODE, value: "0x5" }] }, { traceTransfers: true });
  const logs = block.calls[0]?.logs ?? [];
  assert.deepEqual(
    logs.map(({ address, logIndex }) => [address, logIndex]),
    [
      [ETHER, "0x0"],
      [CODE, "0x1"],
      [ETHER, "0x2"],
      [CODE, "0x3"],
    ],
  );
  assert.deepEqual([logs[0]?.data, logs[2]?.data], [word(5), word(1)]);
  // Traced transfers are not in the bloom: the same calls without tracing have the same bloom.
  const plain = await one({ ...payload, calls: [{ from: SENDER, to: CODE, value: "0x5" }] });
  assert.equal(block.logsBloom, plain.logsBloom);
  assert.equal(block.receiptsRoot, plain.receiptsRoot);
  const failing = { [CODE]: { code: "0x5f5ffd" }, [SENDER]: { balance: "0x9" } };
  const none = await one(
    { stateOverrides: failing, calls: [{ from: SENDER, to: CODE, value: "0x5" }] },
    { traceTransfers: true },
  );
  assert.deepEqual(none.calls[0]?.logs, []);
});

test("the balance that a self-destruct moves is a traced transfer", async () => {
  const stateOverrides = { [CODE]: { code: `0x73${OTHER.slice(2)}ff`, balance: "0x64" } };
  const block = await one({ stateOverrides, calls: [{ to: CODE }] }, { traceTransfers: true });
  const [log] = block.calls[0]?.logs ?? [];
  assert.deepEqual([log?.address, log?.data], [ETHER, word(100)]);
});

test("a call gets the rest of the request's gas, and its error reports an exceeded budget", async () => {
  const loop = { [CODE]: { code: "0x5b5f56" } };
  const [block] = await simulate(
    { blockStateCalls: [{ stateOverrides: loop, calls: [{ to: CODE }] }] },
    { gasCap: 100_000n },
  );
  assert.equal(block?.calls[0]?.error?.message, "out of gas (gas limit was capped by the RPC server's global gas cap)");
  await assert.rejects(one({ blockOverrides: { gasLimit: "0x10" }, calls: [{ gas: "0x11" }] }), {
    code: -38015,
    message: "block gas limit reached: remaining: 16, required: 17",
  });
});

test("contradictory payloads are rejected with geth's texts", async () => {
  await assert.rejects(one({ calls: [{ gasPrice: "0x1", maxFeePerGas: "0x1" }] }), {
    message: "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
  });
  await assert.rejects(one({ calls: [{ chainId: "0x2" }] }), {
    message: "chainId does not match node's (have=2, want=1)",
  });
  await assert.rejects(
    one({ stateOverrides: { [CODE]: { state: {}, stateDiff: {} } } }),
    /has both 'state' and 'stateDiff'/,
  );
  await assert.rejects(one({ calls: [{ type: "0x7e" }] }), NotExecutableError);
});

test("state replaces all storage, stateDiff single slots; block overrides apply to one block, state overrides to all later ones", async () => {
  const reads = "6001546002540160005260206000f3";
  const [first, second, third] = await simulate({
    blockStateCalls: [
      {
        stateOverrides: { [CODE]: { code: `0x${reads}`, state: { [word(1)]: word(5), [word(2)]: word(6) } } },
        calls: [{ to: CODE }],
      },
      { stateOverrides: { [CODE]: { stateDiff: { [word(1)]: word(1) } } }, calls: [{ to: CODE }] },
      { stateOverrides: { [CODE]: { state: { [word(2)]: word(2) } } }, calls: [{ to: CODE }] },
    ],
  });
  const sums = [first, second, third].map((block) => BigInt(block?.calls[0]?.returnData ?? 0));
  assert.deepEqual(sums, [11n, 7n, 2n]);
});
