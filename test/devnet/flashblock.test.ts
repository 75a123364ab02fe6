import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { formatTransaction } from "../../src/ethereum/formatTransaction.ts";
import { type Address, type Hash, type Hex, parseData } from "../../src/ethereum/hex.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import { compileToken } from "./compileToken.ts";
import { createDevnet, type Devnet } from "./devnet.ts";
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

test("the token's code equals the compiled source", () => {
  assert.equal(TOKEN_BYTECODE, compileToken());
});
