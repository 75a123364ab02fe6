import assert from "node:assert/strict";
import { test } from "node:test";
import { PARENT } from "../support/builders/parentBlock.ts";
import { simulateOne } from "./plainSimulation.ts";
import { bytes, CODE, forkOf, GAS, hex, LOGGER, SENDER, simulateCall, word } from "./simulateCall.ts";

const SENDER_CHECKSUMMED = "0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa";

const MAX_UINT256 = 2n ** 256n - 1n;

const MAX_NONCE = "0xffffffffffffffff";

const CALL_LOGGER = `5f5f5f5f5f73${LOGGER.slice(2)}5af150`;

// Before go-ethereum 1.17.9, the logs of failed frames used indices too.
test("log indices count the logs that remain, as in a sealed block", async () => {
  // Two logs, then a revert.
  const logger = { [LOGGER]: { code: "0x5f5fa05f5fa05f5ffd" } };
  // A log, three failing calls, a log.
  const code = `0x5f5fa0${CALL_LOGGER.repeat(3)}5f5fa000`;
  const block = await simulateOne({
    stateOverrides: { ...logger, [CODE]: { code } },
    calls: [{ to: CODE }, { to: LOGGER }, { to: CODE }],
  });
  const indices = block.calls.map(({ logs }) => logs.map(({ logIndex }) => Number(logIndex)));
  assert.deepEqual(indices, [[0, 1], [], [2, 3]]);
});

test("log indices count traced transfers, except failed and rejected ones", async () => {
  const send = (value: string) => `5f5f5f5f60${value}73${LOGGER.slice(2)}5af150`;
  const states = {
    [SENDER]: { balance: "0x9" },
    [LOGGER]: { code: "0x5f5ffd" },
    [CODE]: { code: `0x${send("01")}${send("63")}5f5fa000` },
  };
  const call = { from: SENDER, to: CODE, value: "0x5" };
  const traced = await simulateCall(call, states, {}, { traceTransfers: true });
  assert.deepEqual(
    traced.logs.map(({ logIndex }) => Number(logIndex)),
    [0, 1],
  );
  const plain = await simulateCall(call, states);
  assert.deepEqual(
    plain.logs.map(({ logIndex }) => Number(logIndex)),
    [0],
  );
});

test("transfers of calls that fail at once use no index", async () => {
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
    [[], [], [], [], [], [], ["0x0"]],
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
  await assert.rejects(simulateCall({ from: SENDER, to: CODE, maxFeePerGas: hex(MAX_UINT256) }, states), overflow);
  await assert.rejects(
    simulateCall({ from: SENDER, to: CODE, maxFeePerGas: "0x1", value: hex(MAX_UINT256) }, states),
    overflow,
  );
});

test("a balance wraps at 256 bits", async () => {
  const states = {
    [SENDER]: { balance: "0x9" },
    [CODE]: { balance: hex(MAX_UINT256), code: "0x475f5260205ff3" },
  };
  const { status, returnData } = await simulateCall({ from: SENDER, to: CODE, value: "0x3" }, states);
  assert.deepEqual([status, returnData], ["0x1", word(2)]);
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
      [{ to: CODE, blobVersionedHashes: Array(7).fill(blob) }, "blob transaction has too many blobs"],
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
      await assert.rejects(simulateCall({ from: SENDER, ...fields, ...price }, {}, forkOf("osaka")), {
        code: -32603,
        message: `err: ${message} (supplied gas ${Number(GAS)})`,
      });
    }
    const both = { from: SENDER, to: CODE, authorizationList: [authorization], blobVersionedHashes: [blob], ...price };
    assert.equal((await simulateCall(both, {}, forkOf("osaka"))).status, "0x1");
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
