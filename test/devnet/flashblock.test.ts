import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { formatTransaction } from "../../src/ethereum/formatTransaction.ts";
import { type Address, type Hash, type Hex, parseData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE } from "../../src/ethereum/transaction.ts";
import { compileToken } from "./compileToken.ts";
import { createDevnet, type Devnet } from "./devnet.ts";
import { formatMetadata } from "./flashblock.ts";
import type { NodeBlock } from "./nodeBlock.ts";
import { TOKEN_BYTECODE } from "./token.ts";
import { devAccounts } from "./traffic.ts";

const [alice, bob] = devAccounts;
assert.ok(alice && bob);
const authority = privateKeyToAccount(`0x${"11".repeat(32)}`);

const sendRaw = async (devnet: Devnet, raw: Hex): Promise<void> => {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
  const response = await fetch(devnet.url, { method: "POST", headers, body });
  assert.equal(((await response.json()) as { error?: unknown }).error, undefined);
};

/** Creates one transaction of each type that clients may send, from one sender. */
const sendAllTypes = async (devnet: Devnet): Promise<void> => {
  const { chainId } = devnet;
  const call = { to: bob.address, value: 1n, gas: 100_000n };
  const gasPrice = 20n * 10n ** 9n;
  const fees = { maxFeePerGas: gasPrice, maxPriorityFeePerGas: 1n };
  const accessList = [{ address: bob.address, storageKeys: [`0x${"01".repeat(32)}`] }] as const;
  const authorization = await authority.signAuthorization({ address: alice.address, chainId, nonce: 0 });
  const all = [
    await alice.signTransaction({ type: "legacy", chainId, nonce: 0, ...call, gasPrice }),
    await alice.signTransaction({ type: "eip2930", chainId, nonce: 1, ...call, gasPrice, accessList }),
    await alice.signTransaction({ type: "eip1559", chainId, nonce: 2, ...call, ...fees, accessList }),
    await alice.signTransaction({
      type: "eip7702",
      chainId,
      nonce: 3,
      ...call,
      ...fees,
      authorizationList: [authorization],
    }),
  ];
  for (const raw of all) {
    await sendRaw(devnet, raw);
  }
};

test("balances and receipts of the messages are those of the sealed block, for every type of transaction", async () => {
  await using devnet = await createDevnet({ manual: true, generation: "b" });
  await devnet.step();
  await sendAllTypes(devnet);
  const { diff, metadata } = await devnet.step();
  assert.deepEqual(
    diff.transactions.map((raw) => parseTransaction(parseData(raw)).type),
    [0, 1, 2, 4],
  );
  const { block } = await devnet.sealNow();
  const { new_account_balances, receipts } = metadata as {
    new_account_balances: Record<Address, Hex>;
    receipts: Record<Hash, { type: Hex; cumulativeGasUsed: Hex; status: Hex }>;
  };
  assert.ok(Object.keys(new_account_balances).length > 3);
  for (const [address, balance] of Object.entries(new_account_balances)) {
    assert.equal(balance, await devnet.rpc("eth_getBalance", address, block.number), address);
  }
  for (const [hash, receipt] of Object.entries(receipts)) {
    const sealed = (await devnet.rpc("eth_getTransactionReceipt", hash)) as typeof receipt;
    assert.deepEqual(receipt, {
      type: sealed.type,
      status: sealed.status,
      cumulativeGasUsed: sealed.cumulativeGasUsed,
      logs: [],
    });
  }
  // With the values of L1Block, the node charges L1 and operator fees.
  for (const vault of ["0x420000000000000000000000000000000000001a", "0x420000000000000000000000000000000000001b"]) {
    assert.notEqual(await devnet.rpc("eth_getBalance", vault, "latest"), "0x0", vault);
  }
});

test("transactions are formatted as the node gives them", async () => {
  await using devnet = await createDevnet({ manual: true });
  await devnet.step();
  await sendAllTypes(devnet);
  await devnet.step();
  const { block } = await devnet.sealNow();
  type Fields = Record<string, unknown> & { hash: Hash; from: Address; type: Hex };
  const full = (await devnet.rpc("eth_getBlockByNumber", block.number, true)) as Omit<NodeBlock, "transactions"> & {
    transactions: Fields[];
  };
  for (const [transactionIndex, { blockTimestamp, ...theirs }] of full.transactions.entries()) {
    assert.equal(blockTimestamp, full.timestamp);
    // Deposits of anvil have no gasPrice. The vector tests compare ours with a real chain's.
    if (theirs.type === "0x7e") {
      continue;
    }
    const parsed = parseTransaction(parseData(await rawOf(devnet, theirs.hash)));
    const ours = formatTransaction(parsed, {
      sender: theirs.from,
      blockHash: full.hash,
      blockNumber: BigInt(full.number),
      transactionIndex,
      baseFee: BigInt(full.baseFeePerGas),
    });
    assert.deepEqual(ours, theirs);
  }
});

const rawOf = async (devnet: Devnet, hash: Hash): Promise<Hex> => {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getRawTransactionByHash", params: [hash] });
  const response = await fetch(devnet.url, { method: "POST", headers, body });
  return ((await response.json()) as { result: Hex }).result;
};

const receipt = {
  type: DEPOSIT_TYPE,
  status: true,
  cumulativeGasUsed: 16n,
  logs: [],
  logsBloom: new Uint8Array(256),
  depositNonce: 1n,
  depositReceiptVersion: 1n,
};
const source = {
  blockNumber: 5,
  receipts: new Map([[ZERO_HASH, receipt]]),
  balances: new Map<Hex, bigint>([["0xaa", 255n]]),
  previous: "4-9",
};
const body = { cumulativeGasUsed: "0x10", logs: [], depositNonce: "0x1", depositReceiptVersion: "0x1" };
const balances = { new_account_balances: { "0xaa": "0xff" } };
const tagged = { type: "0x7e", ...body };
const METADATA = {
  a: { ...balances, receipts: { [ZERO_HASH]: { Deposit: { status: "0x1", ...body } } } },
  b: { ...balances, receipts: { [ZERO_HASH]: { status: "0x1", ...tagged } } },
  c: {},
  d: { ...balances, receipts: { [ZERO_HASH]: { status: true, ...tagged } }, access_list: null },
  e: { access_list: null },
  f: { access_list: null, prev_flashblock_id: "4-9" },
  i: { ...balances, receipts: { [ZERO_HASH]: { status: "0x1", ...tagged } } },
} as const;

for (const generation of ["a", "b", "c", "d", "e", "f", "i"] as const) {
  test(`metadata of generation ${generation}`, () => {
    assert.deepEqual(formatMetadata(generation, source), { block_number: 5, ...METADATA[generation] });
  });
}

test("Subblocks have neither hash nor roots", async () => {
  await using devnet = await createDevnet({ manual: true, generation: "i", deposits: false });
  const { diff } = await devnet.step();
  assert.deepEqual([diff.block_hash, diff.state_root, diff.withdrawals_root], [ZERO_HASH, ZERO_HASH, ZERO_HASH]);
  assert.deepEqual(diff.transactions, []);
});

test("the token's code equals the compiled source", () => {
  assert.equal(TOKEN_BYTECODE, compileToken());
});
