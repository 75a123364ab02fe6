import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { createDevnet } from "../test/devnet/devnet.ts";
import { devAccounts, startTraffic } from "../test/devnet/traffic.ts";
import { drawPanels } from "../test/grafana/drawPanels.ts";
import { startPrometheus } from "../test/grafana/prometheusServer.ts";
import { rpc } from "../test/support/clients/rpc.ts";
import { connectSocket } from "../test/support/clients/socketClient.ts";
import { CHROMIUM_FLAGS } from "../test/support/servers/chromium.ts";
import { startRedis } from "../test/support/servers/redis.ts";
import { createService } from "../test/support/servers/service.ts";

/** `npm run pictures` draws the PNGs of this folder. It needs prometheus, chromium and redis-server, and takes four minutes. */

const TRAFFIC_MS = 230_000;
const READ_MS = 40;
/** Reads per simulation. */
const SIMULATE_EVERY = 20;

const PICTURES = [
  { file: "panels-requests.png", rows: ["Requests", "Cache"] },
  { file: "panels-chain.png", rows: ["Upstream", "Heads", "Pending"] },
];

const picture = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

const ends: (() => unknown)[] = [];
const redis = await startRedis({ after: (end) => ends.push(end) });
const devnet = await createDevnet({ network: "optimism" });
const { url, opsUrl, ...service } = await createService(
  {
    name: "devnet",
    nodes: [
      { name: "a", url: devnet.url, wsUrl: devnet.anvilWsUrl },
      { name: "b", url: devnet.url },
    ],
    forks: "isthmus",
    pending: { feeds: devnet.feedUrl === undefined ? [] : [devnet.feedUrl] },
    quirks: { anvilDepositNonce: true },
  },
  { cache: { redis: redis.url } },
);
const prometheus = await startPrometheus(new URL(opsUrl).host);
const traffic = await startTraffic({ url, chainId: devnet.chainId, rate: 8 });
const socket = await connectSocket(url);
for (const kind of ["newHeads", "newPendingTransactions"]) {
  await socket.subscribe(kind);
}
await socket.subscribe("logs", {});

const owners = devAccounts.map(({ address }) => address);
const questions = (turn: number): readonly (readonly [string, readonly unknown[]])[] => {
  const owner = owners[turn % owners.length];
  return [
    ["eth_blockNumber", []],
    ["eth_getBlockByNumber", ["latest", turn % 2 === 0]],
    ["eth_getBalance", [owner, "latest"]],
    ["eth_getTransactionCount", [owner, "pending"]],
    ["eth_getBalance", [owner, "pending"]],
    ["eth_gasPrice", []],
    ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "latest", address: traffic.token }]],
    ["eth_getBlockByNumber", ["pending", false]],
    ["eth_getBlockByNumber", [`0x${(turn % 7).toString(16)}`, false]],
    ["web3_clientVersion", []],
  ];
};
const endMs = performance.now() + TRAFFIC_MS;
for (let turn = 0; performance.now() < endMs; turn++) {
  const list = questions(Math.floor(turn / 10));
  const [method, params] = list[turn % list.length] ?? ["eth_chainId", []];
  await rpc(url, method, params);
  if (turn % SIMULATE_EVERY === 0) {
    await rpc(url, "eth_simulateV1", [{ blockStateCalls: [{ calls: [{ from: owners[0], to: owners[1] }] }] }]);
  }
  await sleep(READ_MS);
}

const executablePath = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).stdout.trim();
const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_FLAGS] });
const page = await browser.newPage({ viewport: { width: 1120, height: 200 } });
await page.goto(url);
await page.locator("td.bar").first().waitFor();
await sleep(10_000);
await page.screenshot({ path: picture("status.png"), fullPage: true });
for (const { file, rows } of PICTURES) {
  await drawPanels(browser, prometheus.url, rows, picture(file));
}

await browser.close();
await socket.close();
await traffic.stop();
await prometheus.close();
await service.close();
await devnet.close();
for (const end of ends.reverse()) {
  await end();
}
process.exit(0);
