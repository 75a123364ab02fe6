import { DEMO_HELP, parseDemoOptions } from "./demoOptions.ts";

/** `npm run demo`: a real node, a sequencer feed, traffic, and forebay in front of them. No Redis, no internet. */

const READ_MS = 100;
const CALL_MS = 500;
const TELL_MS = 4_000;
const PARENT_MS = 500;

/** npm may be ended without a signal to its children, at any time. They get another parent then. */
const parent = process.ppid;

const say = (text = "") => process.stdout.write(`${text}\n`);

const fail = (error: unknown): never => {
  process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
};

const readOptions = () => {
  try {
    return parseDemoOptions(process.argv.slice(2));
  } catch (error) {
    return fail(error);
  }
};

const options = readOptions();
if (options === "help") {
  say(DEMO_HELP);
  process.exit(0);
}
const { port, rate, seconds } = options;

// Options and their faults load no service.
const { encodeFunctionData } = await import("viem");
const { createForebay } = await import("../../src/app/main.ts");
const { configSchema } = await import("../../src/config/schema.ts");
const { createTelemetry } = await import("../../src/telemetry/telemetry.ts");
const { createDevnet } = await import("./devnet.ts");
const { TOKEN_ABI } = await import("./token.ts");
const { devAccounts, startTraffic } = await import("./traffic.ts");

say("starting a node, its sequencer feed, and forebay ...");
const devnet = await createDevnet({ blockTimeMs: 2_000, clientVersion: "devnet/v1" });
// Ctrl-C ends the node too. Warnings about its connections would be the last lines.
const telemetry = createTelemetry({ level: "error" });
const config = configSchema.parse({
  chains: [
    {
      name: "devnet",
      nodes: [{ name: "anvil", url: devnet.url, wsUrl: devnet.anvilWsUrl }],
      pending: { feeds: devnet.feedUrl === undefined ? [] : [devnet.feedUrl] },
      forks: "isthmus",
      quirks: { anvilDepositNonce: true },
    },
  ],
  server: { port, opsPort: port === 0 ? 0 : port + 1_000, drainDelayMs: 0 },
});
const forebay = await createForebay(config, telemetry).catch(async (error: unknown) => {
  await devnet.close();
  return fail(error);
});
await forebay.ready;
const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate });

const ask = async (method: string, params: readonly unknown[]): Promise<unknown> => {
  const response = await fetch(forebay.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result } = (await response.json()) as { result?: unknown };
  return result;
};

/** The usual calls of wallets and indexers. */
const [account] = devAccounts;
const owner = account?.address ?? "";
const reads: readonly (readonly [string, readonly unknown[]])[] = [
  ["eth_blockNumber", []],
  ["eth_getBlockByNumber", ["latest", false]],
  ["eth_getBalance", [owner, "latest"]],
  ["eth_getTransactionCount", [owner, "pending"]],
  ["eth_gasPrice", []],
  ["eth_getLogs", [{ fromBlock: "earliest", toBlock: "latest", address: traffic.token }]],
];
/** Calls of wallets: balances of the token. */
const balances = devAccounts.map(({ address }) => ({
  from: address,
  to: traffic.token,
  data: encodeFunctionData({ abi: TOKEN_ABI, functionName: "balanceOf", args: [address] }),
}));
const calling = setInterval(() => {
  for (const call of balances) {
    ask("eth_call", [call, "latest"]).catch((error: unknown) => say(`a call failed: ${String(error)}`));
  }
}, CALL_MS);
let read = 0;
const reading = setInterval(() => {
  const [method, params] = reads[read++ % reads.length] ?? ["eth_chainId", []];
  ask(method, params).catch((error: unknown) => say(`a read failed: ${String(error)}`));
}, READ_MS);

const total = async (name: string, label: string): Promise<number> => {
  const metric = await telemetry.registry.getSingleMetric(name)?.get();
  return (metric?.values ?? [])
    .filter(({ labels }) => Object.values(labels).includes(label))
    .reduce((sum, { value }) => sum + value, 0);
};

const block = (tag: string) =>
  ask("eth_getBlockByNumber", [tag, false]) as Promise<{ number: string; transactions: unknown[] } | null>;

const telling = setInterval(async () => {
  try {
    const [latest, pending] = await Promise.all([block("latest"), block("pending")]);
    const hits = await total("forebay_cache_lookups_total", "memory");
    const misses = await total("forebay_cache_lookups_total", "miss");
    const share = hits + misses === 0 ? 0 : Math.round((100 * hits) / (hits + misses));
    say(
      `block ${Number(latest?.number)}: ${latest?.transactions.length} transactions; ` +
        `pending ${Number(pending?.number)}: ${pending?.transactions.length} so far; from the cache: ${share} %`,
    );
  } catch (error) {
    say(`no status: ${String(error)}`);
  }
}, TELL_MS);

/** A message of the feed, as forebay serves it shortly afterwards. */
interface Flashblock {
  readonly number: string;
  readonly gasUsed: string;
  readonly transactions: readonly unknown[];
}
interface SocketMessage {
  readonly id?: string;
  readonly result?: unknown;
  readonly params?: { readonly subscription: unknown; readonly result: Flashblock };
}

let survived = 0;
/** Shows how many answers to calls were still valid at a block, when the next block arrives. */
const tellAnswers = async (head: { readonly number: string }): Promise<void> => {
  const before = survived;
  survived = await total("forebay_state_answers_total", "reused");
  say(`block ${Number(head.number) - 1}: ${survived - before} answers survived`);
};

let shown: Flashblock | undefined;
const tellFlashblock = (block: Flashblock): void => {
  const before = shown?.number === block.number ? shown : undefined;
  const more = block.transactions.length - (before?.transactions.length ?? 0);
  const gas = Number(block.gasUsed) - Number(before?.gasUsed ?? 0);
  shown = block;
  if (more > 0) {
    say(`  pending ${Number(block.number)}: ${more} more transactions, ${gas} gas`);
  }
};
const socket = new WebSocket(forebay.url.replace("http:", "ws:"));
socket.addEventListener("open", () => {
  for (const kind of ["newFlashblocks", "newHeads"]) {
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: kind, method: "eth_subscribe", params: [kind] }));
  }
});
let headsId: unknown;
socket.addEventListener("message", ({ data }) => {
  const { id, result, params } = JSON.parse(String(data)) as SocketMessage;
  if (id === "newHeads") {
    headsId = result;
  }
  if (params === undefined) {
    return;
  }
  if (params.subscription === headsId) {
    void tellAnswers(params.result);
  } else {
    tellFlashblock(params.result);
  }
});

/** The account that every transaction pays. Its balance at `pending` changes with each message. */
const FEE_VAULT = "0x4200000000000000000000000000000000000011";

const curl = (method: string, params: readonly unknown[]) =>
  `  curl -s -H 'content-type: application/json' ${forebay.url} -d '${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}'`;

say(`
forebay listens at ${forebay.url} (chain ${devnet.chainId}); metrics: ${forebay.opsUrl}/metrics

${curl("eth_getBlockByNumber", ["latest", false])}
${curl("eth_getLogs", [{ fromBlock: "earliest", toBlock: "latest", address: traffic.token }])}
${curl("eth_getTransactionCount", [owner, "pending"])}
${curl("eth_getBalance", [FEE_VAULT, "pending"])}

The last one moves with every message of the feed. Ctrl-C ends everything.
`);

const stop = async (): Promise<void> => {
  clearInterval(reading);
  clearInterval(telling);
  clearInterval(calling);
  socket.close();
  await traffic.stop();
  await forebay.drain();
  await devnet.close();
  say("ended");
  process.exit(0);
};
let stopping = false;
const stopOnce = (): void => {
  if (stopping) {
    process.exit(1);
  }
  stopping = true;
  void stop();
};
process.on("SIGINT", stopOnce).on("SIGTERM", stopOnce);
if (seconds !== undefined) {
  setTimeout(stopOnce, seconds * 1_000);
}
setInterval(() => {
  if (process.ppid !== parent && !stopping) {
    stopOnce();
  }
}, PARENT_MS).unref();
