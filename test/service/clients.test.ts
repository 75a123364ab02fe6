import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { JsonRpcProvider, parseEther as parseEtherEthers, Wallet } from "ethers";
import { createPublicClient, createWalletClient, defineChain, erc20Abi, http, parseEther } from "viem";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { TOKEN_ABI, TOKEN_BYTECODE } from "../devnet/token.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { createService, type Service } from "../support/servers/service.ts";

let devnet: Devnet;
let service: Service;

before(async () => {
  devnet = await createDevnet({ blockTimeMs: 400, flashblockMs: 100 });
  service = await createService({ nodes: [{ url: devnet.url }], pending: { mode: "node" } });
});
after(async () => {
  await service?.close();
  await devnet?.close();
});

test("viem: chain id, balance, nonce, estimate, send, receipt, logs", async () => {
  const [account] = devAccounts;
  assert.ok(account);
  const chain = defineChain({
    id: devnet.chainId,
    name: "devnet",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [service.url] } },
  });
  const transport = http(service.url);
  const client = createPublicClient({ chain, transport, pollingInterval: 50 });
  const wallet = createWalletClient({ chain, transport, account });
  assert.equal(await client.getChainId(), devnet.chainId);
  assert.ok((await client.getBalance({ address: account.address })) > 0n);

  const deployed = await client.waitForTransactionReceipt({
    hash: await wallet.deployContract({ abi: TOKEN_ABI, bytecode: TOKEN_BYTECODE, args: [[account.address], 1_000n] }),
  });
  assert.equal(deployed.status, "success");
  assert.ok(deployed.contractAddress);
  // anvil charges the L1 fee for a call too, so that reads name an account with a balance.
  const token = { address: deployed.contractAddress, abi: erc20Abi } as const;
  const to = "0x00000000000000000000000000000000000000aa";
  const nonce = await client.getTransactionCount({ address: account.address });
  const hash = await wallet.writeContract({ ...token, functionName: "transfer", args: [to, 5n] });
  const receipt = await client.waitForTransactionReceipt({ hash });
  assert.equal(receipt.status, "success");
  assert.equal(await client.getTransactionCount({ address: account.address }), nonce + 1);
  assert.equal(await client.readContract({ ...token, functionName: "balanceOf", args: [to], account }), 5n);
  const logs = await client.getContractEvents({ ...token, eventName: "Transfer", fromBlock: receipt.blockNumber });
  assert.deepEqual(
    logs.map(({ transactionHash, args }) => [transactionHash, args.value]),
    [[hash, 5n]],
  );
  const value = parseEther("1");
  const gas = await client.estimateGas({ account, to, value });
  const sent = await client.waitForTransactionReceipt({ hash: await wallet.sendTransaction({ to, value, gas }) });
  assert.equal(await client.getBalance({ address: to, blockNumber: sent.blockNumber }), value);
});

/** Reads the node's own data of a failed transaction. */
const explain = async (hash: string): Promise<string> => {
  const calls = [
    devnet.rpc("eth_getTransactionByHash", hash),
    devnet.rpc("eth_getTransactionReceipt", hash),
    devnet.rpc("debug_traceTransaction", hash, { tracer: "callTracer" }),
  ];
  const answers = await Promise.all(calls.map((answer) => answer.catch(String)));
  return JSON.stringify({ answers, failures: devnet.failures.map(String) });
};

test("ethers: the same", async (t) => {
  const provider = new JsonRpcProvider(service.url, devnet.chainId, { staticNetwork: true, pollingInterval: 50 });
  try {
    const key = `0x${"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"}`;
    const wallet = new Wallet(key, provider);
    assert.equal((await provider.getNetwork()).chainId, BigInt(devnet.chainId));
    const nonce = await wallet.getNonce();
    const to = "0x00000000000000000000000000000000000000bb";
    const sent = await wallet.sendTransaction({ to, value: parseEtherEthers("2") });
    const receipt = await sent.wait().catch(async (error: unknown) => {
      t.diagnostic(await explain(sent.hash));
      throw error;
    });
    assert.equal(receipt?.status, 1);
    assert.equal(await provider.getBalance(to), parseEtherEthers("2"));
    assert.equal(await wallet.getNonce(), nonce + 1);
    const logs = await provider.getLogs({ fromBlock: 0, toBlock: "latest" });
    assert.ok(logs.length >= 0);
  } finally {
    provider.destroy();
  }
});
