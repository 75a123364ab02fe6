import { createRequire } from "node:module";
import { join } from "node:path";
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

// The long run installs the package in the folder that it starts this program in.
const { Web3 } = createRequire(join(process.cwd(), "client.js"))("web3");
const [, , url, wsUrl] = process.argv;
const web3 = new Web3(url);
const head = Promise.withResolvers<unknown>();
let nonce = 0;
let hash = "";

await printSteps({
  chainId: () => web3.eth.getChainId(),
  net_version: () => web3.eth.net.getId(),
  block: () => web3.eth.getBlock("latest", true),
  balance: () => web3.eth.getBalance(ACCOUNT),
  nonce: async () => {
    nonce = await web3.eth.getTransactionCount(ACCOUNT, "pending");
    return nonce;
  },
  call: () => web3.eth.call({ to: IDENTITY, data: INPUT }),
  gas: () => web3.eth.estimateGas({ from: ACCOUNT, data: DEPLOYMENT }),
  fees: () => web3.eth.calculateFeeData(),
  feeHistory: () => web3.eth.getFeeHistory(3, "latest", [50]),
  subscribe: async () => {
    const subscription = await new Web3(wsUrl).eth.subscribe("newBlockHeaders");
    subscription.on("data", head.resolve);
  },
  send: async () => {
    const fees = { gas: GAS, maxFeePerGas: MAX_FEE, maxPriorityFeePerGas: PRIORITY_FEE };
    const transaction = { chainId: 31_337, type: 2, data: DEPLOYMENT, nonce, ...fees };
    const { rawTransaction } = await web3.eth.accounts.signTransaction(transaction, KEY);
    ({ transactionHash: hash } = await web3.eth.sendSignedTransaction(rawTransaction));
    return hash;
  },
  receipt: () => web3.eth.getTransactionReceipt(hash),
  transaction: () => web3.eth.getTransaction(hash),
  logs: () => web3.eth.getPastLogs({ address: CONTRACT, fromBlock: 0, toBlock: "latest" }),
  newHead: () => head.promise,
  eth_sendTransaction: async () => {
    const params = [{ from: ACCOUNT, to: IDENTITY, value: "0x1" }];
    const { result, error } = await web3.currentProvider.request({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_sendTransaction",
      params,
    });
    return result ?? error;
  },
});
