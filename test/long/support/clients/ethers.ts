import { JsonRpcProvider, Wallet, WebSocketProvider } from "ethers";
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

const [, , url, wsUrl = ""] = process.argv;
const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 50, cacheTimeout: -1 });
const wallet = new Wallet(KEY, provider);
const head = Promise.withResolvers<unknown>();
let nonce = 0;
let hash = "";

await printSteps({
  chainId: async () => (await provider.getNetwork()).chainId,
  net_version: () => provider.send("net_version", []),
  block: () => provider.getBlock("latest", true),
  balance: () => provider.getBalance(ACCOUNT),
  nonce: async () => {
    nonce = await provider.getTransactionCount(ACCOUNT, "pending");
    return nonce;
  },
  call: () => provider.call({ to: IDENTITY, data: INPUT }),
  gas: () => provider.estimateGas({ from: ACCOUNT, data: DEPLOYMENT }),
  fees: () => provider.getFeeData(),
  subscribe: async () => {
    await new WebSocketProvider(wsUrl).on("block", head.resolve);
  },
  send: async () => {
    const fees = { gasLimit: GAS, maxFeePerGas: MAX_FEE, maxPriorityFeePerGas: PRIORITY_FEE };
    const transaction = { chainId: 31_337, type: 2, data: DEPLOYMENT, nonce, ...fees };
    hash = (await provider.broadcastTransaction(await wallet.signTransaction(transaction))).hash;
    return hash;
  },
  receipt: () => provider.waitForTransaction(hash),
  transaction: () => provider.getTransaction(hash),
  logs: () => provider.getLogs({ address: CONTRACT, fromBlock: 0, toBlock: "latest" }),
  newHead: () => head.promise,
  eth_sendTransaction: () => provider.send("eth_sendTransaction", [{ from: ACCOUNT, to: IDENTITY, value: "0x1" }]),
});
