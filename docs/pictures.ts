import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { createDevnet } from "../test/devnet/devnet.ts";
import { startTraffic } from "../test/devnet/traffic.ts";
import { drawPanels } from "../test/grafana/drawPanels.ts";
import { startPrometheus } from "../test/grafana/prometheusServer.ts";
import { connectSocket } from "../test/support/clients/socketClient.ts";
import { CHROMIUM_FLAGS } from "../test/support/servers/chromium.ts";
import { startRedis } from "../test/support/servers/redis.ts";
import { createService } from "../test/support/servers/service.ts";
import { clientKeys, readForPictures } from "./pictureTraffic.ts";

/** `npm run pictures` draws the PNGs of this folder. It needs prometheus, chromium and redis-server, and takes four minutes. */

const TRAFFIC_MS = 230_000;

/** Those in this folder are shown by a document. */
const PICTURES = [
  { file: "panels-overview.png", rows: ["Overview", "Usage by key"] },
  { file: "panels-requests.png", rows: ["Requests", "Cache"] },
  { file: "panels-chain.png", rows: ["Upstream", "Heads", "Pending"] },
  { file: "../dist/panels-state.png", rows: ["State", "Simulation"] },
  { file: "../dist/panels-process.png", rows: ["Logs", "Subscriptions", "Process"] },
];

const picture = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

mkdirSync(new URL("../dist/", import.meta.url), { recursive: true });
const ends: (() => unknown)[] = [];
const redis = await startRedis({ after: (end) => ends.push(end) });
const devnet = await createDevnet({ network: "optimism", clientVersion: "devnet/v1" });
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
  { cache: { redis: redis.url }, access: { keys: clientKeys } },
);
const prometheus = await startPrometheus(new URL(opsUrl).host);
const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: 8 });
const socket = await connectSocket(`${url}/devnet/explorer`);
for (const kind of ["newHeads", "newPendingTransactions"]) {
  await socket.subscribe(kind);
}
await socket.subscribe("logs", {});

const stopReading = new AbortController();
const reading = readForPictures(url, traffic.token, stopReading.signal);
await sleep(TRAFFIC_MS);

const executablePath = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).stdout.trim();
const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_FLAGS] });
const page = await browser.newPage({
  viewport: { width: 1120, height: 200 },
  extraHTTPHeaders: { "x-api-key": "explorer" },
});
await page.goto(url);
await page.locator("td.bar").first().waitFor();
await sleep(10_000);
await page.screenshot({ path: picture("status.png"), fullPage: true });
for (const { file, rows } of PICTURES) {
  await drawPanels(browser, prometheus.url, rows, picture(file));
}

stopReading.abort();
await reading;
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
