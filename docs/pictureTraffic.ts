import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeFunctionData } from "viem";
import { TOKEN_ABI } from "../test/devnet/token.ts";
import { devAccounts } from "../test/devnet/traffic.ts";
import { rpc } from "../test/support/clients/rpc.ts";

/** Clients of the pictures: each has a key of its own, and one asks ten times as often. */
const CLIENTS = ["explorer", "wallet", "indexer"] as const;
const READ_MS = 40;
/** Reads per simulation, and per call with invalid parameters. */
const SIMULATE_EVERY = 20;
const MISTAKE_EVERY = 60;
const ACCOUNTS = 3;

/** The configuration of the clients' keys. A key is the name of its client. */
export const clientKeys = CLIENTS.map((name) => ({ name, sha256: hash("sha256", name) }));

type Question = readonly [method: string, params: readonly unknown[]];

const owners = devAccounts.map(({ address }) => address);

const questionsAt = (turn: number, token: string): readonly Question[] => {
  // Few accounts: an answer is learned once a later block repeats its call.
  const owner = owners[turn % ACCOUNTS];
  const balance = encodeFunctionData({ abi: TOKEN_ABI, functionName: "balanceOf", args: [owner ?? "0x"] });
  return [
    ["eth_blockNumber", []],
    ["eth_getBlockByNumber", ["latest", turn % 2 === 0]],
    ["eth_getBalance", [owner, "latest"]],
    ["eth_call", [{ from: owner, to: token, data: balance }, "latest"]],
    ["eth_getTransactionCount", [owner, "pending"]],
    ["eth_getBalance", [owner, "pending"]],
    ["eth_gasPrice", []],
    ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "latest", address: token }]],
    ["eth_getBlockByNumber", ["pending", false]],
    ["eth_getBlockByNumber", [`0x${(turn % 7).toString(16)}`, false]],
    ["eth_call", [{ from: owner, to: token, data: balance }, "latest"]],
    ["web3_clientVersion", []],
  ];
};

/** Sends reads, calls and simulations of three clients, until the signal is aborted. */
export const readForPictures = async (url: string, token: string, signal: AbortSignal): Promise<void> => {
  for (let turn = 0; !signal.aborted; turn++) {
    const list = questionsAt(Math.floor(turn / 12), token);
    const [method, params] = list[turn % list.length] ?? ["eth_chainId", []];
    const headers = { "x-api-key": CLIENTS[turn % 12 === 0 ? 1 : turn % 5 === 0 ? 2 : 0] };
    await rpc(url, method, params, headers);
    if (turn % SIMULATE_EVERY === 0) {
      const calls = [{ from: owners[0], to: owners[1] }];
      await rpc(url, "eth_simulateV1", [{ blockStateCalls: [{ calls }] }], headers);
    }
    if (turn % MISTAKE_EVERY === 0) {
      await rpc(url, "eth_getBalance", ["0x"], headers);
    }
    await sleep(READ_MS);
  }
};
