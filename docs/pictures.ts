import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { createDevnet } from "../test/devnet/devnet.ts";
import { startTraffic } from "../test/devnet/traffic.ts";
import { drawPanels } from "../test/grafana/drawPanels.ts";
import { startPrometheus } from "../test/grafana/prometheusServer.ts";
import { connectSocket } from "../test/support/clients/socketClient.ts";
import { CHROMIUM_FLAGS } from "../test/support/servers/chromium.ts";
import { startRedis } from "../test/support/servers/redis.ts";
import { createService } from "../test/support/servers/service.ts";
import { clientKeys, startPictureTraffic } from "./pictureTraffic.ts";

/**
 * `npm run pictures` draws the PNGs of this folder after ten minutes of wallet traffic; `-- --minutes N` takes fewer. It needs
 * prometheus, chromium and redis-server, and a quiet machine: what else runs is in the latencies.
 */

const MINUTE_MS = 60_000;
const DEFAULT_MINUTES = "10";
/** Time that the line of the status page shows. */
const SHOWN_MS = 2 * MINUTE_MS;
/** Load of a quiet machine, as a share of its cores. */
const QUIET_SHARE = 0.5;

const { values } = parseArgs({ options: { minutes: { type: "string", default: DEFAULT_MINUTES } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) {
  process.stderr.write("pictures: --minutes must be a number above 0\n");
  process.exit(1);
}
const [load = 0] = loadavg();
if (load > QUIET_SHARE * availableParallelism()) {
  process.stderr.write(`pictures: the machine is busy (load ${load.toFixed(1)}), and the pictures will show that\n`);
}

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
const devnet = await createDevnet({ network: "ethereum", clientVersion: "devnet/v1" });
const { url, opsUrl, ...service } = await createService(
  {
    name: "devnet",
    nodes: [
      { name: "a", url: devnet.url, wsUrl: devnet.anvilWsUrl },
      { name: "b", url: devnet.url },
    ],
    forks: "prague",
    // anvil seals a block with another random value than its pending block has.
    quirks: { anvilDepositNonce: true },
    pending: { feeds: devnet.feedUrl === undefined ? [] : [devnet.feedUrl] },
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

const wallets = startPictureTraffic(url, traffic.token);
const beforePageMs = Math.max(0, minutes * MINUTE_MS - SHOWN_MS);
await sleep(beforePageMs);

const executablePath = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).stdout.trim();
const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_FLAGS] });
const page = await browser.newPage({
  viewport: { width: 1120, height: 200 },
  extraHTTPHeaders: { "x-api-key": "explorer" },
});
await page.goto(url);
await page.locator("td.bar").first().waitFor();
await sleep(minutes * MINUTE_MS - beforePageMs);
await page.screenshot({ path: picture("status.png"), fullPage: true });
for (const { file, rows } of PICTURES) {
  await drawPanels(browser, prometheus.url, rows, picture(file));
}

await wallets.stop();
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
