import { setTimeout as sleep } from "node:timers/promises";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { createService } from "../support/servers/service.ts";

const WHOLE_SECONDS = 120;
const MESSAGES_A_BLOCK = 10;
const MESSAGE_MS = 200;
const POLL_MS = 25;
const SUBMIT_MS = 250;
const SUBMITTERS = 5;
const MAX_BEHIND_MS = 1_000;
const MAX_SHOWN = 10;

interface Sealed {
  readonly number: bigint;
  readonly atMs: number;
}

/** Repeats an action once a period until aborted, one at a time. */
const every = async (periodMs: number, signal: AbortSignal, act: () => Promise<void>): Promise<void> => {
  let dueMs = performance.now();
  while (!signal.aborted) {
    await act();
    dueMs = Math.max(dueMs + periodMs, performance.now());
    await sleep(Math.max(0, dueMs - performance.now()), undefined, { signal }).catch(() => undefined);
  }
};

const createRpc =
  (url: string) =>
  async (method: string, params: readonly unknown[]): Promise<{ result: unknown; mode: string | null }> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
    if (error) {
      throw new Error(`${method}: ${error.message}`);
    }
    return { result, mode: response.headers.get("x-forebay-pending") };
  };
type Rpc = ReturnType<typeof createRpc>;

/** First 2 s blocks of ten messages with a feed, then a block every 200 ms without a feed. */
const sequence = async (devnet: Devnet, isFast: () => boolean, signal: AbortSignal): Promise<void> => {
  let messages = 0;
  await every(MESSAGE_MS, signal, async () => {
    if (isFast()) {
      if (messages === 0) {
        await devnet.step();
      }
      await devnet.step();
      await devnet.sealNow();
      messages = 0;
      return;
    }
    if (messages === MESSAGES_A_BLOCK) {
      await devnet.sealNow();
      messages = 0;
    }
    await devnet.step();
    messages++;
  });
};

/** A client that polls pending blocks and records wrong responses. */
const poll = async (rpc: Rpc, sealed: readonly Sealed[], wrong: string[], signal: AbortSignal) => {
  const modes = new Map<string, number>();
  let worstBehindMs = 0;
  await every(POLL_MS, signal, async () => {
    const askedAtMs = performance.now();
    const { result, mode } = await rpc("eth_getBlockByNumber", ["pending", false]);
    modes.set(String(mode), (modes.get(String(mode)) ?? 0) + 1);
    if (result === null) {
      wrong.push("null");
      return;
    }
    const number = BigInt((result as { number: string }).number);
    // The first block above the response that was sealed before the request. Since then the response was too old.
    const missed = sealed.find((block) => block.number > number && block.atMs <= askedAtMs);
    const behindMs = missed ? askedAtMs - missed.atMs : 0;
    worstBehindMs = Math.max(worstBehindMs, behindMs);
    if (behindMs > MAX_BEHIND_MS) {
      wrong.push(`${number} in mode ${mode} is ${Math.round(behindMs)} ms behind`);
    }
  });
  return { modes: Object.fromEntries(modes), worstBehindMs: Math.round(worstBehindMs) };
};

/** A client that reads its next nonce at `pending` each time. */
const submit = async (rpc: Rpc, devnet: Devnet, at: number, wrong: string[], signal: AbortSignal): Promise<number> => {
  const account = devAccounts[at];
  if (!account) {
    throw new Error("no such account");
  }
  let expected = 0;
  await every(SUBMIT_MS, signal, async () => {
    const { result, mode } = await rpc("eth_getTransactionCount", [account.address, "pending"]);
    const nonce = Number(result);
    if (nonce !== expected) {
      wrong.push(`nonce ${nonce} instead of ${expected} for ${at} in mode ${mode}`);
    }
    const fees = { maxFeePerGas: 20n * 10n ** 9n, maxPriorityFeePerGas: 1_000_000n };
    const transfer = { to: account.address, value: 1n, gas: 21_000n };
    const raw = await account.signTransaction({
      type: "eip1559",
      chainId: devnet.chainId,
      nonce,
      ...fees,
      ...transfer,
    });
    await rpc("eth_sendRawTransaction", [raw]);
    expected = nonce + 1;
  });
  return expected;
};

/** Switches a chain from a feed to blocks every 200 ms, while clients read `pending`. */
export const long = async ({ seconds }: { readonly seconds: number | undefined }) => {
  const durationMs = (seconds ?? WHOLE_SECONDS) * 1_000;
  await using devnet = await createDevnet({
    manual: true,
    blockTimeMs: MESSAGE_MS,
    flashblockMs: MESSAGE_MS,
    generation: "f",
  });
  const sealed: Sealed[] = [];
  devnet.events.on("sealed", ({ number }) => sealed.push({ number, atMs: performance.now() }));
  await devnet.sealNow();
  const service = await createService({
    nodes: [{ url: devnet.url }],
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
    pending: { feeds: devnet.feedUrl ? [devnet.feedUrl] : [] },
  });
  const rpc = createRpc(service.url);
  const stopping = new AbortController();
  const { signal } = stopping;
  const wrong: string[] = [];
  let isFast = false;
  const note = (error: unknown) => {
    wrong.push(String(error));
  };
  try {
    const building = sequence(devnet, () => isFast, signal).catch(note);
    const polling = poll(rpc, sealed, wrong, signal).catch(note);
    const submitting = Array.from({ length: SUBMITTERS }, (_, at) =>
      submit(rpc, devnet, at, wrong, signal).catch(note),
    );
    await sleep(durationMs / 2);
    const slowBlocks = sealed.length;
    isFast = true;
    devnet.faults.drop(Number.MAX_SAFE_INTEGER);
    await sleep(durationMs / 2);
    stopping.abort();
    const [polled, submitted] = await Promise.all([polling, Promise.all(submitting), building]);
    return {
      passed: wrong.length === 0 && devnet.failures.length === 0,
      wrong: wrong.slice(0, MAX_SHOWN),
      wrongs: wrong.length,
      ...polled,
      submitted,
      slowBlocks,
      fastBlocks: sealed.length - slowBlocks,
      failures: devnet.failures.map(String),
    };
  } finally {
    stopping.abort();
    await service.close();
  }
};
