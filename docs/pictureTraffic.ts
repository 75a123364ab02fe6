import { hash } from "node:crypto";
import { type Address, encodeFunctionData } from "viem";
import { TOKEN_ABI } from "../test/devnet/token.ts";
import { devAccounts } from "../test/devnet/traffic.ts";
import { rpc } from "../test/support/clients/rpc.ts";

/** Clients of the pictures: each has a key of its own, and the wallets ask most. */
const CLIENTS = ["wallet", "explorer", "indexer"] as const;
type Client = (typeof CLIENTS)[number];

const WALLETS = 100;
/** A wallet reads its balances again after this time. Wallets do so at different times. */
const REFRESH_MS = 4_000;
/** One refresh in this many also reads the nonce, as before a transaction. */
const NONCE_EVERY = 10;
const EXPLORER_MS = 250;
const INDEXER_MS = 1_000;
const SIMULATE_MS = 2_000;
const MISTAKE_MS = 10_000;

/** The configuration of the clients' keys. A key is the name of its client. */
export const clientKeys = CLIENTS.map((name) => ({ name, sha256: hash("sha256", name) }));

type Question = readonly [method: string, params: readonly unknown[]];

const owners: readonly Address[] = devAccounts.map(({ address }) => address);

/** The accounts of the devnet, which send transactions, and others, which do nothing. */
const addressOf = (wallet: number): Address => owners[wallet] ?? `0x${wallet.toString(16).padStart(40, "a")}`;

const refreshOf = (wallet: number, turn: number, token: string): readonly Question[] => {
  const owner = addressOf(wallet);
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "balanceOf", args: [owner] });
  return [
    ["eth_blockNumber", []],
    ["eth_getBalance", [owner, "latest"]],
    ["eth_call", [{ to: token, data }, "latest"]],
    ...((wallet + turn) % NONCE_EVERY === 0 ? ([["eth_getTransactionCount", [owner, "pending"]]] as const) : []),
  ];
};

const explorerQuestions = (turn: number): Question => {
  const list: readonly Question[] = [
    ["eth_getBlockByNumber", ["latest", true]],
    ["eth_getBlockByNumber", ["pending", false]],
    ["eth_getBlockByNumber", [`0x${(turn % 7).toString(16)}`, false]],
    ["eth_gasPrice", []],
    ["eth_getBalance", [owners[turn % owners.length], "pending"]],
    ["web3_clientVersion", []],
  ];
  return list[turn % list.length] ?? ["eth_chainId", []];
};

const simulation: Question = [
  "eth_simulateV1",
  [{ blockStateCalls: [{ calls: [{ from: owners[0], to: owners[1] }] }] }],
];

/** Sends the calls of wallets, of an explorer and of an indexer until `stop`, which resolves when all have their answers. */
export const startPictureTraffic = (url: string, token: string) => {
  const timers: NodeJS.Timeout[] = [];
  const running = new Set<Promise<unknown>>();
  const ask = (client: Client, [method, params]: Question): void => {
    const call = rpc(url, method, params, { "x-api-key": client });
    running.add(call);
    void call.finally(() => running.delete(call));
  };
  /** Calls an action with its turn at an interval, from a delay on. */
  const repeat = (everyMs: number, action: (turn: number) => void, delayMs = everyMs): void => {
    let turn = 0;
    timers.push(
      setTimeout(() => {
        action(turn++);
        timers.push(setInterval(() => action(turn++), everyMs));
      }, delayMs),
    );
  };
  for (let wallet = 0; wallet < WALLETS; wallet++) {
    const refresh = (turn: number) => {
      for (const question of refreshOf(wallet, turn, token)) {
        ask("wallet", question);
      }
    };
    repeat(REFRESH_MS, refresh, (wallet / WALLETS) * REFRESH_MS);
  }
  repeat(EXPLORER_MS, (turn) => ask("explorer", explorerQuestions(turn)));
  repeat(INDEXER_MS, () => ask("indexer", ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "latest", address: token }]]));
  repeat(SIMULATE_MS, () => ask("explorer", simulation));
  repeat(MISTAKE_MS, () => ask("explorer", ["eth_getBalance", ["0x"]]));
  return {
    stop: async (): Promise<void> => {
      for (const timer of timers) {
        clearTimeout(timer);
      }
      await Promise.allSettled(running);
    },
  };
};
