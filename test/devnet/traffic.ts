import { setTimeout as sleep } from "node:timers/promises";
import { type Address, encodeDeployData, encodeFunctionData, getContractAddress, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { TOKEN_ABI, TOKEN_BYTECODE } from "./token.ts";

export type TrafficKind = "transfer" | "token" | "create" | "revert" | "store";

export interface TrafficOptions {
  readonly url: string;
  readonly chainId: number;
  /** Transactions a second. */
  readonly rate: number;
  readonly kinds?: readonly TrafficKind[];
}

export interface Traffic {
  readonly token: Address;
  /** Number of accepted transactions. */
  readonly sent: number;
  /** Errors of rejected transactions, newest last. */
  readonly errors: readonly unknown[];
  stop(): Promise<void>;
}

interface SendOptions {
  readonly to?: Address;
  readonly data?: Hex;
  readonly value?: bigint;
  readonly gas: bigint;
}

/** The published private keys of anvil's accounts, of the mnemonic "test test ... junk". To derive them takes half a second. */
const DEV_KEYS = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
  "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
  "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
  "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
  "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
] as const;
const SUPPLY_EACH = 10n ** 24n;
const MAX_FEE = 20n * 10n ** 9n;
const ALL_KINDS: readonly TrafficKind[] = [
  "transfer",
  "token",
  "token",
  "create",
  "token",
  "revert",
  "store",
  "transfer",
];
/** Creates a contract whose code is a single STOP. */
const TINY_CREATION: Hex = "0x600160005360016000f3";

/** The accounts of anvil, each with 10,000 ether. */
export const devAccounts = DEV_KEYS.map((key) => privateKeyToAccount(key));

type DevAccount = (typeof devAccounts)[number];

/** One of 97 accounts that only receive. */
export const recipientOf = (at: number): Address =>
  `0x${(0xba51n * 2n ** 128n + BigInt(at % 97)).toString(16).padStart(40, "0")}`;

/** Sends typical transactions at a steady rate, from all accounts of anvil in turn. */
export const startTraffic = async (options: TrafficOptions): Promise<Traffic> => {
  const { url, chainId } = options;
  const kinds = options.kinds ?? ALL_KINDS;
  const stopping = new AbortController();
  const nonces = new Map<Address, number>();
  const errors: unknown[] = [];
  let sent = 0;

  const rpc = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const headers = { "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers, body });
    const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
    if (error !== undefined) {
      throw new Error(error.message);
    }
    return result;
  };

  const nonceOf = async (account: DevAccount): Promise<number> =>
    nonces.get(account.address) ?? Number(await rpc("eth_getTransactionCount", [account.address, "pending"]));

  const send = async (account: DevAccount, transaction: SendOptions): Promise<number> => {
    const nonce = await nonceOf(account);
    const fees = { maxFeePerGas: MAX_FEE, maxPriorityFeePerGas: 1_000_000n };
    const raw = await account.signTransaction({ type: "eip1559", chainId, nonce, ...fees, ...transaction });
    try {
      await rpc("eth_sendRawTransaction", [raw]);
    } catch (error) {
      // Read the nonce from the node again.
      nonces.delete(account.address);
      throw error;
    }
    nonces.set(account.address, nonce + 1);
    sent++;
    return nonce;
  };

  const [deployer] = devAccounts;
  if (deployer === undefined) {
    throw new Error("no accounts");
  }
  const owners = devAccounts.map(({ address }) => address);
  const creation = encodeDeployData({ abi: TOKEN_ABI, bytecode: TOKEN_BYTECODE, args: [owners, SUPPLY_EACH] });
  const nonce = await send(deployer, { data: creation, gas: 3_000_000n });
  const token = getContractAddress({ from: deployer.address, nonce: BigInt(nonce) });

  const sendOne = (kind: TrafficKind, at: number): Promise<number> => {
    const account = devAccounts[at % DEV_KEYS.length] ?? deployer;
    const to = recipientOf(at);
    const call = (data: Hex) => send(account, { to: token, data, gas: 200_000n });
    const value = BigInt(at + 1);
    switch (kind) {
      case "transfer":
        return send(account, { to, value, gas: 21_000n });
      case "token":
        return call(encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [to, value] }));
      case "store":
        return call(encodeFunctionData({ abi: TOKEN_ABI, functionName: "store", args: [value % 17n, value] }));
      case "revert":
        return call(encodeFunctionData({ abi: TOKEN_ABI, functionName: "fail" }));
      case "create":
        return send(account, { data: TINY_CREATION, gas: 200_000n });
    }
  };

  const run = async () => {
    const periodMs = 1_000 / options.rate;
    let dueMs = performance.now();
    for (let at = 0; !stopping.signal.aborted; at++) {
      await sendOne(kinds[at % kinds.length] ?? "transfer", at).catch((error) => errors.push(error));
      dueMs = Math.max(dueMs + periodMs, performance.now());
      await sleep(Math.max(0, dueMs - performance.now()), undefined, { signal: stopping.signal }).catch(
        () => undefined,
      );
    }
  };
  const running = run();

  return {
    token,
    get sent() {
      return sent;
    },
    errors,
    stop: () => {
      stopping.abort();
      return running;
    },
  };
};
