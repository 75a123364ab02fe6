import { spawnSync } from "node:child_process";
import { argv } from "node:process";
import { chromium } from "playwright-core";
import { z } from "zod";
import { CHROMIUM_FLAGS } from "../support/chromium.ts";
import { panelsPage, type ReadLines } from "./panelsPage.ts";

const PERIOD_SECONDS = 300;
const STEP_SECONDS = 2;
const WINDOW = "20s";

const series = z.object({
  metric: z.record(z.string(), z.string()),
  values: z.array(z.tuple([z.number(), z.string()])),
});
const answer = z.object({ data: z.object({ result: z.array(series) }) });

const readFrom =
  (prometheus: string): ReadLines =>
  async (expr, legend) => {
    const end = Date.now() / 1000;
    const query = expr.replaceAll("$__rate_interval", WINDOW).replaceAll(/\$(chain|instance|node)\b/g, ".*");
    const range = { query, start: `${end - PERIOD_SECONDS}`, end: `${end}`, step: `${STEP_SECONDS}` };
    const response = await fetch(`${prometheus}/api/v1/query_range?${new URLSearchParams(range)}`);
    return answer.parse(await response.json()).data.result.map(({ metric, values }) => ({
      legend: legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ""),
      points: values
        .map(([seconds, value]) => ({ seconds, value: Number(value) }))
        .filter(({ value }) => Number.isFinite(value)),
    }));
  };

const [prometheus, file] = argv.slice(2);
if (prometheus === undefined || file === undefined) {
  throw new Error("node test/grafana/drawPanels.ts http://127.0.0.1:9090 panels.png");
}
const executablePath = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).stdout.trim();
const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_FLAGS] });
try {
  const page = await browser.newPage({ viewport: { width: 1380, height: 900 } });
  await page.setContent(await panelsPage(readFrom(prometheus)));
  await page.screenshot({ path: file, fullPage: true });
} finally {
  await browser.close();
}
