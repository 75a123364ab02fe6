import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { type Address, encodeFunctionData } from "viem";
import { TOKEN_ABI } from "../devnet/token.ts";

export interface WalletsOptions {
  readonly url: string;
  readonly addresses: readonly Address[];
  readonly token: Address;
}

/** Clients of forebay. */
export interface Wallets {
  /** Calls by method. */
  readonly calls: ReadonlyMap<string, number>;
  /** Calls without a result. */
  readonly failed: number;
  /** The reason of the last failure. */
  readonly lastFailure: string | undefined;
  /** Ends the calls in flight, and sends none until `act` has ended, as behind a load balancer. */
  pausedDuring<T>(act: () => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

interface WalletCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

const REFRESH_MS = 3_000;
const CONNECTIONS = 16;

/** Returns what a wallet reads to show its balances. */
const callsOf = (address: Address, token: Address): readonly WalletCall[] => {
  const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "balanceOf", args: [address] });
  return [
    { method: "eth_blockNumber", params: [] },
    { method: "eth_gasPrice", params: [] },
    { method: "eth_getBalance", params: [address, "latest"] },
    { method: "eth_getTransactionCount", params: [address, "latest"] },
    { method: "eth_call", params: [{ to: token, data }, "latest"] },
  ];
};

/** Starts wallets that refresh every 3 s, at different times. */
export const startWallets = ({ url, addresses, token }: WalletsOptions): Wallets => {
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections: CONNECTIONS });
  const calls = new Map<string, number>();
  const inFlight = new Set<Promise<void>>();
  const stopping = new AbortController();
  let failed = 0;
  let lastFailure: string | undefined;
  let isPaused = false;

  const ask = async ({ method, params }: WalletCall): Promise<void> => {
    calls.set(method, (calls.get(method) ?? 0) + 1);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    try {
      const answer = await pool.request({
        ...{ path, method: "POST", body },
        headers: { "content-type": "application/json" },
      });
      const text = await answer.body.text();
      const { result } = JSON.parse(text) as { readonly result?: unknown };
      if (result === undefined) {
        throw new Error(text);
      }
    } catch (error) {
      // The demo ends, and forebay with it.
      if (stopping.signal.aborted) {
        return;
      }
      failed++;
      lastFailure = `${method}: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const send = (call: WalletCall): void => {
    const sent = ask(call);
    inFlight.add(sent);
    void sent.finally(() => inFlight.delete(sent));
  };

  const run = async (address: Address, delayMs: number): Promise<void> => {
    const { signal } = stopping;
    const reads = callsOf(address, token);
    await sleep(delayMs, undefined, { signal });
    for (;;) {
      if (!isPaused) {
        reads.forEach(send);
      }
      await sleep(REFRESH_MS, undefined, { signal });
    }
  };
  const running = addresses.map((address, index) =>
    run(address, (index / addresses.length) * REFRESH_MS).catch(() => undefined),
  );

  return {
    calls,
    get failed() {
      return failed;
    },
    get lastFailure() {
      return lastFailure;
    },
    pausedDuring: async (act) => {
      isPaused = true;
      try {
        await Promise.all(inFlight);
        return await act();
      } finally {
        isPaused = false;
      }
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
      await pool.destroy();
    },
  };
};
