import { createPublicClient, createWalletClient, http, webSocket } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { anvil } from "viem/chains";
import {
  ACCOUNT,
  CONTRACT,
  DEPLOYMENT,
  GAS,
  IDENTITY,
  INPUT,
  KEY,
  MAX_FEE,
  PRIORITY_FEE,
  printSteps,
} from "./clientWork.ts";

const [, , url, wsUrl] = process.argv;
const client = createPublicClient({ chain: anvil, transport: http(url), pollingInterval: 50, cacheTime: 0 });
const wallet = createWalletClient({ chain: anvil, transport: http(url), account: privateKeyToAccount(KEY) });
const head = Promise.withResolvers<unknown>();
let nonce = 0;
let hash: `0x${string}` = "0x";

await printSteps({
  chainId: () => client.getChainId(),
  net_version: () => client.request({ method: "net_version" }),
  block: () => client.getBlock({ includeTransactions: true }),
  balance: () => client.getBalance({ address: ACCOUNT }),
  nonce: async () => {
    nonce = await client.getTransactionCount({ address: ACCOUNT, blockTag: "pending" });
    return nonce;
  },
  call: () => client.call({ to: IDENTITY, data: INPUT }),
  gas: () => client.estimateGas({ account: ACCOUNT, data: DEPLOYMENT }),
  fees: () => client.estimateFeesPerGas(),
  feeHistory: () => client.getFeeHistory({ blockCount: 3, rewardPercentiles: [50] }),
  subscribe: async () => {
    const { subscribe } = webSocket(wsUrl)({ chain: anvil }).value ?? {};
    await subscribe?.({ params: ["newHeads"], onData: ({ result }) => head.resolve(result), onError: head.reject });
  },
  send: async () => {
    const serializedTransaction = await wallet.signTransaction({
      data: DEPLOYMENT,
      nonce,
      gas: BigInt(GAS),
      maxFeePerGas: BigInt(MAX_FEE),
      maxPriorityFeePerGas: BigInt(PRIORITY_FEE),
    });
    hash = await client.sendRawTransaction({ serializedTransaction });
    return hash;
  },
  receipt: () => client.waitForTransactionReceipt({ hash }),
  transaction: () => client.getTransaction({ hash }),
  logs: () => client.getLogs({ address: CONTRACT, fromBlock: 0n, toBlock: "latest" }),
  newHead: () => head.promise,
  eth_sendTransaction: () =>
    client.request({
      method: "eth_sendTransaction" as never,
      params: [{ from: ACCOUNT, to: IDENTITY, value: "0x1" }] as never,
    }),
});
