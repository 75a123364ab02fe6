import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import type { Status } from "../../src/admin/status.ts";
import { statusPage } from "../../src/admin/statusPage.ts";
import { CHROMIUM_FLAGS } from "../support/servers/chromium.ts";

const BROWSER = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).stdout.trim();
const FLASHBLOCKS = 10;

const statusAt = (poll: number): Status => ({
  version: "0.1.0",
  uptimeSeconds: 7_300 + poll,
  draining: false,
  chains: [
    {
      name: "base",
      chainId: 8453,
      head: "agreed",
      latest: { number: 38_200_000 + poll, ageSeconds: 1.2 },
      safe: { number: 38_199_700, ageSeconds: 601 },
      finalized: { number: 38_199_100, ageSeconds: 1_801 },
      pending: { mode: "live", number: 38_200_001 + poll, feedAgeMs: 140 },
      requestsPerSecond: 412 + 40 * Math.sin(poll),
      saved: { calls: 1_234_567, units: 24_691_340 },
      hitRatio: 0.914,
      nodes: [
        { name: "ours", head: 38_200_000 + poll, lagBlocks: 0, breakerOpen: false, headsIgnored: false },
        {
          name: "<img src=x onerror=alert(1)>",
          head: 38_199_981,
          lagBlocks: 19,
          breakerOpen: true,
          headsIgnored: false,
        },
      ],
      forwarded: [],
      flashblocks: Array.from({ length: FLASHBLOCKS }, (_, age) => ({
        number: 38_200_001 + poll,
        index: FLASHBLOCKS - 1 - age,
        transactions: 12 + ((age * 7) % 11),
        gasUsed: 4_000_000 + ((age * 5) % 7) * 900_000,
        ageMs: 140 + age * 200,
      })),
    },
    {
      name: "mainnet",
      chainId: null,
      head: null,
      latest: null,
      safe: null,
      finalized: null,
      pending: { mode: "none", number: null, feedAgeMs: null },
      requestsPerSecond: 0,
      saved: { calls: 0, units: 0 },
      hitRatio: null,
      nodes: [{ name: "node1", head: null, lagBlocks: null, breakerOpen: true, headsIgnored: false }],
      forwarded: [],
      flashblocks: [],
    },
  ],
});

test("a browser draws the status and updates it", { skip: BROWSER === "" && "no chromium" }, async () => {
  let polls = 0;
  let failing = false;
  const asked = new Set<string>();
  const server = createServer((request, response) => {
    asked.add(request.url ?? "");
    if (request.url !== "/status.json") {
      response.setHeader("content-type", "text/html; charset=utf-8").end(statusPage());
      return;
    }
    polls += 1;
    response.statusCode = failing ? 503 : 200;
    response.setHeader("content-type", "application/json").end(JSON.stringify(statusAt(polls)));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const context = await chromium.launchPersistentContext("", {
    executablePath: BROWSER,
    headless: true,
    args: [...CHROMIUM_FLAGS],
    viewport: { width: 1120, height: 900 },
  });
  after(async () => {
    await context.close();
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !failing) {
      faults.push(message.text());
    }
  });
  await page.goto(`http://127.0.0.1:${address.port}/`);

  const base = page.locator('[data-chain="base"]');
  await base.getByText("38,200,003", { exact: true }).first().waitFor();
  const text = (await base.textContent()) ?? "";
  for (const part of [
    "chain 8453",
    "pending: live",
    "91.4 %",
    "1,234,567",
    "24,691,340 units",
    "feed 0.1 s ago",
    "30 min ago",
    "suspended",
    "<img src=x",
  ]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.equal(await base.locator("td.bar").count(), FLASHBLOCKS);
  await page.locator('[data-chain="mainnet"]').getByText("pending: none").waitFor();
  assert.equal(await page.locator("#state").textContent(), "serving");
  const { SCREENSHOTS } = process.env;
  if (SCREENSHOTS !== undefined) {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(SCREENSHOTS, `status-${colorScheme}.png`) });
    }
  }

  failing = true;
  await page.getByText("no response, retrying").waitFor();
  failing = false;
  await page.getByText("serving").waitFor();
  assert.deepEqual(faults, []);
  assert.deepEqual([...asked].sort(), ["/", "/status.json"]);
});
