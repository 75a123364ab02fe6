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
/** The width of a small phone. */
const PHONE_PX = 375;

const statusAt = (poll: number): Status => ({
  version: "0.1.0",
  uptimeSeconds: 7_300 + poll,
  draining: false,
  today: {
    day: "2026-11-27",
    calls: 9_876_543,
    saved: { calls: 9_000_100, units: 187_654_321 },
    spent: { calls: 310_002, units: 6_200_040 },
  },
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
      knownState: { values: 1_048_576, bytes: 133_400_000, readShare: 0.952 },
      proofs: { proven: 0.62, checked: 0.3, stated: 0.08 },
      heads: { agreed: 0.999, linked: 0.001 },
      nodes: [
        {
          ...{ name: "ours", head: 38_200_000 + poll, lagBlocks: 0, breakerOpen: false, headsIgnored: false },
          ...{ latencyMs: 3.42, share: 0.875, errors: 0, lastError: null, units: 5_400_000 },
        },
        {
          name: "<img src=x onerror=alert(1)>",
          head: 38_199_981,
          lagBlocks: 19,
          breakerOpen: true,
          headsIgnored: false,
          ...{ latencyMs: 212.4, share: 0.125, errors: 1_204, units: 800_040 },
          lastError: { text: "the node does not respond in time, or it is overloaded", ageSeconds: 185 },
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
      knownState: { values: 0, bytes: 0, readShare: null },
      proofs: null,
      heads: null,
      nodes: [
        {
          ...{ name: "node1", head: null, lagBlocks: null, breakerOpen: true, headsIgnored: false },
          ...{ latencyMs: null, share: null, errors: 0, lastError: null, units: 0 },
        },
      ],
      forwarded: [],
      flashblocks: [],
    },
  ],
});

/** The least room between two texts of one line. */
const MIN_GAP_PX = 8;

/** The browser's JavaScript that finds neighbours whose texts touch, words that are broken, and a page wider than the screen. */
const FIND_TOUCHING = `(() => {
  const boxOf = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getBoundingClientRect();
  };
  const touches = (a, b) =>
    a.width > 0 && b.width > 0 && a.left < b.left && a.bottom > b.top && b.bottom > a.top && a.right + ${MIN_GAP_PX} > b.left;
  const touching = [...document.querySelectorAll("tr, dl")].flatMap(({ children }) => [...children].slice(1).flatMap((cell, index) =>
    touches(boxOf(children[index]), boxOf(cell)) ? [children[index].textContent + " | " + cell.textContent] : []));
  const broken = [...document.querySelectorAll("th")].filter((cell) => boxOf(cell).height > 30).map((cell) => cell.textContent);
  const { scrollWidth } = document.documentElement;
  return [...touching, ...broken, ...(scrollWidth > innerWidth ? [scrollWidth + " px wide"] : [])];
})()`;

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
    // The message of a failed poll may come after the next one.
    if (message.type() === "error" && !message.text().includes("status of 503")) {
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
    "3.4 ms",
    "87.5 %",
    "1,204",
    "800,040",
    "the node does not respond in time, or it is overloaded, 3 min ago",
    "1,048,576",
    "values, 133.4 MB",
    "95.2 %",
    "checked 30.0 %, stated 8.0 %",
    "linked 0.1 %",
    "Requests per second in the last two minutes",
  ]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.equal(await base.locator("td.bar").count(), FLASHBLOCKS);
  await page.locator('[data-chain="mainnet"]').getByText("pending: none").waitFor();
  assert.equal(await page.locator("#state").textContent(), "serving");
  assert.match((await page.locator(".today").textContent()) ?? "", /2026-11-27 \(UTC\).*6,200,040.*187,654,321/);
  for (const width of [1120, 800, PHONE_PX]) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await page.evaluate(FIND_TOUCHING), [], `${width} px`);
  }
  const { SCREENSHOTS } = process.env;
  if (SCREENSHOTS !== undefined) {
    await page.screenshot({ path: join(SCREENSHOTS, "status-phone.png"), fullPage: true });
    await page.setViewportSize({ width: 1120, height: 900 });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(SCREENSHOTS, `status-${colorScheme}.png`), fullPage: true });
    }
  }

  failing = true;
  await page.getByText("no response, retrying").waitFor();
  failing = false;
  await page.getByText("serving").waitFor();
  assert.deepEqual(faults, []);
  assert.deepEqual([...asked].sort(), ["/", "/status.json"]);
});
