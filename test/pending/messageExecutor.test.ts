import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { NO_VALUES, type StateKeys, type StateValues } from "../../src/core/stateReader.ts";
import type { PendingEnvironment } from "../../src/core/view.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { type Address, type Data, formatData, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { encodeReceipt } from "../../src/ethereum/receipt.ts";
import type { Rules } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { ExecutableMessage } from "../../src/pending/executableMessage.ts";
import { createMessageRunner } from "../support/builders/messageRunner.ts";

const CHAIN_ID = 7;
const RULES: Rules = { chainId: BigInt(CHAIN_ID), fork: "prague" };
const sender = privateKeyToAccount(`0x${"11".repeat(32)}`);
const SENDER = sender.address.toLowerCase() as Address;
const RECIPIENT: Address = "0x00000000000000000000000000000000000beef1";
const NATIVE: Address = "0xb200000000000000000000000000000000000001";
const GAS = 21_000n;
const engine = await createEngines();

const transfer = (nonce: number, to = RECIPIENT, chainId = CHAIN_ID): Promise<Data> =>
  sender.signTransaction({
    type: "eip1559",
    chainId,
    nonce,
    to,
    value: 1n,
    gas: GAS,
    maxFeePerGas: 7n,
    maxPriorityFeePerGas: 0n,
  });

const environment = (number: bigint): PendingEnvironment => ({
  number,
  timestamp: 1_700_000_000n + number,
  gasLimit: 30_000_000n,
  baseFeePerGas: 7n,
  feeRecipient: "0x4200000000000000000000000000000000000011",
  prevRandao: ZERO_HASH,
  parentHash: `0x${number.toString(16).padStart(64, "0")}`,
  parentBeaconBlockRoot: ZERO_HASH,
  extraData: "0x",
});

/** Creates the gas, bloom and receipts root of a block with transactions of these types that use this gas. */
const expectedOf = (used: readonly (readonly [type: number, gas: bigint])[]): ExecutableMessage["expected"] => {
  let cumulativeGasUsed = 0n;
  const receipts = used.map(([type, gas]) => {
    cumulativeGasUsed += gas;
    return encodeReceipt({ type, status: true, cumulativeGasUsed, logs: [], logsBloom: createBloom() });
  });
  return {
    gasUsed: cumulativeGasUsed,
    logsBloom: formatData(createBloom()),
    receiptsRoot: orderedTrieRoot(receipts),
  };
};

const expected = (transfers: number) => expectedOf(Array.from({ length: transfers }, () => [2, GAS]));

const createRig = () => {
  const asked: StateKeys[] = [];
  const runner = createMessageRunner(
    {
      fetch: async (_, keys) => {
        asked.push(keys);
        return {
          accounts: keys.accounts.map((address) => [
            address,
            address === SENDER ? { nonce: 0n, balance: 10n ** 18n, codeHash: EMPTY_CODE_HASH } : undefined,
          ]),
          codes: [],
          slots: keys.slots.map(([address, slot]) => [address, slot, new Uint8Array(0)]),
          blockHashes: keys.blockHashes.map((number) => [number, ZERO_HASH]),
        };
      },
      engine,
      isNative: (address) => address === NATIVE,
    },
    { number: 0n, hash: ZERO_HASH },
  );
  const run = (id: number, job: Partial<ExecutableMessage> & Pick<ExecutableMessage, "transactions">) =>
    runner.run(
      {
        id,
        before: undefined,
        environment: environment(1n),
        index: 0,
        accessList: [],
        expected: expected(job.transactions.length),
        ...job,
      },
      RULES,
    );
  return { runner, run, asked };
};

test("a message with unknown rules is decoded and not executed", async () => {
  const { runner, asked } = createRig();
  const job = {
    id: 1,
    before: undefined,
    environment: environment(1n),
    index: 0,
    transactions: [await transfer(0)],
    accessList: [],
    expected: expected(1),
  };
  const { unverified, outcomes, transactions } = await runner.run(job, RULES, false);
  assert.deepEqual([unverified, outcomes, transactions[0]?.sender], ["unexecutable", undefined, SENDER]);
  assert.deepEqual(asked, []);
});

/** A call without value of an account that does not exist, and a transaction with its authorization. */
const callAndAuthorize = async (): Promise<readonly [Data, Data]> => {
  const authority = privateKeyToAccount(`0x${"42".repeat(32)}`);
  const fields = { chainId: CHAIN_ID, value: 0n, gas: 100_000n, maxFeePerGas: 7n, maxPriorityFeePerGas: 0n };
  const authorization = await authority.signAuthorization({ address: NATIVE, chainId: CHAIN_ID, nonce: 0 });
  return [
    await sender.signTransaction({ type: "eip1559", ...fields, nonce: 0, to: authority.address }),
    await sender.signTransaction({
      ...{ type: "eip7702", ...fields, nonce: 1, to: RECIPIENT },
      authorizationList: [authorization],
    }),
  ];
};

/** Measured on go-ethereum 1.17.10: 21,000 and 25,000, without the refund for an account that exists (EIP-7702). */
const AUTHORIZED = [
  [2, GAS],
  [4, 46_000n],
] as const;

test("an authority that an earlier transaction called does not exist, in one message and in a sealed block", async () => {
  const { run } = createRig();
  const { unverified } = await run(1, { transactions: await callAndAuthorize(), expected: expectedOf(AUTHORIZED) });
  assert.equal(unverified, undefined);
});

test("an authority that an earlier message called does not exist", async () => {
  const { run } = createRig();
  const [call, authorized] = await callAndAuthorize();
  const first = await run(1, { transactions: [call], expected: expectedOf(AUTHORIZED.slice(0, 1)) });
  const second = await run(2, {
    ...{ before: 1, index: 1, transactions: [authorized] },
    expected: expectedOf(AUTHORIZED),
  });
  assert.deepEqual([first.unverified, second.unverified], [undefined, undefined]);
});

test("each message is executed on the state after the one before, and returns its write set", async () => {
  const { run } = createRig();
  const first = await run(1, { transactions: [await transfer(0)] });
  assert.equal(first.unverified, undefined);
  assert.deepEqual(
    first.transactions.map((transaction) => transaction.sender),
    [SENDER],
  );
  const second = await run(2, {
    before: 1,
    index: 1,
    transactions: [await transfer(1), await transfer(2)],
    expected: expected(3),
  });
  assert.equal(second.unverified, undefined);
  assert.equal(second.outcomes?.at(-1)?.receipt.cumulativeGasUsed, 3n * GAS);
  assert.equal(second.changes?.get(RECIPIENT)?.account?.balance, 3n);
  assert.equal(second.changes?.get(SENDER)?.account?.nonce, 3n);
});

test("moving the base along executed messages fetches nothing again, and another base discards all state", async () => {
  const { runner, run, asked } = createRig();
  await run(1, { transactions: [await transfer(0)] });
  runner.rebase({ number: 1n, hash: `0x${"1".repeat(64)}` }, 1);
  const before = asked.length;
  const next = await run(2, { before: 1, environment: environment(2n), transactions: [await transfer(1)] });
  assert.equal(next.changes?.get(RECIPIENT)?.account?.balance, 2n);
  assert.equal(asked.length, before);
  runner.rebase({ number: 1n, hash: `0x${"2".repeat(64)}` }, undefined);
  const again = await run(3, { environment: environment(2n), transactions: [await transfer(0)] });
  assert.equal(again.changes?.get(RECIPIENT)?.account?.balance, 1n);
  assert.ok(asked.length > before);
});

test("a result that differs from the message is unverified, and so is every later message", async () => {
  const { run } = createRig();
  const transactions = [await transfer(0)];
  const right = expected(1);
  const unverified = async (wrong: Partial<ExecutableMessage["expected"]>) =>
    (await run(1, { transactions, expected: { ...right, ...wrong } })).unverified;
  assert.equal(await unverified({ gasUsed: 1n }), "gas");
  assert.equal(await unverified({ logsBloom: `0x${"01".repeat(256)}` }), "bloom");
  assert.equal(await unverified({ receiptsRoot: ZERO_HASH }), "receiptsRoot");
  const after = await run(2, { before: 1, index: 1, transactions: [await transfer(1)], expected: expected(2) });
  assert.equal(after.unverified, "unexecutable");
  assert.equal(after.outcomes, undefined);
});

test("a transaction that cannot be executed is reported with the reason", async () => {
  const { run } = createRig();
  const unverified = async (transactions: readonly Data[], more: Partial<ExecutableMessage> = {}) =>
    (await run(1, { transactions, ...more })).unverified;
  assert.equal(await unverified(["0x7e010203"]), "undecodable");
  assert.equal(await unverified(["0x7d01"]), "unexecutable", "a type that is not known may be right");
  assert.equal(await unverified(["0x7b01", await transfer(0)]), "unexecutable");
  assert.equal(await unverified(["0x7b01", "0x7e010203"]), "undecodable");
  assert.equal(await unverified(["0xb001"]), "undecodable", "these bytes have no type");
  assert.equal(await unverified([await transfer(0, RECIPIENT, 8)]), "foreignChain");
  assert.equal(await unverified([await transfer(0, NATIVE)]), "unexecutable");
  assert.equal(await unverified([await transfer(5)]), "rejected");
  assert.equal(await unverified([await transfer(0), await transfer(0)]), "rejected");
  assert.equal(await unverified([await transfer(0)], { postExec: "0x7d01" }), "unexecutable");
});

const rich = (keys: StateKeys): StateValues => ({
  ...NO_VALUES,
  accounts: keys.accounts.map((address) => [
    address,
    address === SENDER ? { nonce: 0n, balance: 10n ** 18n, codeHash: EMPTY_CODE_HASH } : undefined,
  ]),
  slots: keys.slots.map(([address, slot]) => [address, slot, new Uint8Array(0)]),
});
const jobOf = (
  id: number,
  transactions: readonly Data[],
  more: Partial<ExecutableMessage> = {},
): ExecutableMessage => ({
  id,
  before: undefined,
  environment: environment(1n),
  index: 0,
  transactions,
  accessList: [],
  expected: expected(transactions.length),
  ...more,
});
const BASE = { number: 0n, hash: ZERO_HASH };

test("the state in the feed's access list is fetched at once", async () => {
  const slot: Hash = `0x${"0".repeat(63)}7`;
  const asked: StateKeys[] = [];
  const fetch = async (_: unknown, keys: StateKeys): Promise<StateValues> => {
    asked.push(keys);
    return rich(keys);
  };
  const runner = createMessageRunner({ engine, fetch }, BASE);
  await runner.run(jobOf(1, [await transfer(0)], { accessList: [{ address: RECIPIENT, slots: [slot] }] }), RULES);
  assert.deepEqual(asked[0]?.slots, [[RECIPIENT, slot]]);
});
