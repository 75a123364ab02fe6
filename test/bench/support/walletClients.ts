import { Pool } from "undici";
import { createRandom } from "../../support/builders/randomValues.ts";
import { createQuoteCall, createWalletCalls, type WalletCall } from "../../world/state/walletWorld.ts";

export interface WalletLoad {
  readonly url: string;
  readonly wallets: number;
  readonly pools: number;
  readonly quotesPerSecond: number;
}

/** Clients of one service. */
export interface WalletClients {
  /** Answered calls by method. */
  readonly calls: ReadonlyMap<string, number>;
  readonly errors: number;
  /** Times until the answers that known state gave, as the clients measure them. */
  readonly hitsMs: readonly number[];
  stop(): Promise<void>;
}

const REFRESH_MS = 4_000;
const NONCE_SHARE = 0.1;
const CONNECTIONS = 32;
const SECOND_MS = 1_000;
const SEED = 7;

const JSON_TYPE = { "content-type": "application/json" };

/** Starts wallets that refresh every 4 s, at different times, and quotes at an even rate. */
export const startWalletClients = (load: WalletLoad): WalletClients => {
  const { url, wallets, pools, quotesPerSecond } = load;
  const random = createRandom(SEED);
  const pool = new Pool(url, { connections: CONNECTIONS });
  const calls = new Map<string, number>();
  const pending = new Set<Promise<void>>();
  const hitsMs: number[] = [];
  let errors = 0;
  const send = async ({ method, params }: WalletCall): Promise<void> => {
    calls.set(method, (calls.get(method) ?? 0) + 1);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const startMs = performance.now();
    const answer = await pool.request({ path: "/", method: "POST", headers: JSON_TYPE, body });
    const { error } = (await answer.body.json()) as { readonly error?: unknown };
    errors += error === undefined ? 0 : 1;
    if (String(answer.headers["cache-status"]).includes("detail=state")) {
      hitsMs.push(performance.now() - startMs);
    }
  };
  const track = (call: WalletCall): void => {
    const sent = send(call).catch(() => {
      errors++;
    });
    pending.add(sent);
    void sent.finally(() => pending.delete(sent));
  };
  const timers: NodeJS.Timeout[] = [];
  /** Calls an action at an interval, from a delay on. */
  const repeat = (action: () => void, everyMs: number, delayMs: number): void => {
    timers.push(
      setTimeout(() => {
        action();
        timers.push(setInterval(action, everyMs));
      }, delayMs),
    );
  };
  for (let index = 0; index < wallets; index++) {
    const callsOf = createWalletCalls(index);
    const refresh = () => callsOf(random() < NONCE_SHARE).forEach(track);
    repeat(refresh, REFRESH_MS, (index / wallets) * REFRESH_MS);
  }
  if (quotesPerSecond > 0) {
    repeat(() => track(createQuoteCall(random, pools)), SECOND_MS / quotesPerSecond, 0);
  }
  return {
    ...{ calls, hitsMs },
    get errors() {
      return errors;
    },
    stop: async () => {
      for (const timer of timers) {
        clearTimeout(timer);
      }
      await Promise.all(pending);
      await pool.close();
    },
  };
};
