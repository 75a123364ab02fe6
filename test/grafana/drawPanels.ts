import type { Browser } from "playwright-core";
import { z } from "zod";
import { selectAll } from "../../grafana/queries.ts";
import { panelsPage, type ReadLines } from "./panelsPage.ts";

const PERIOD_SECONDS = 240;
const STEP_SECONDS = 2;
const WINDOW = "20s";
const WIDTH = 1000;

const series = z.object({
  metric: z.record(z.string(), z.string()),
  values: z.array(z.tuple([z.number(), z.string()])),
});
const answer = z.object({ data: z.object({ result: z.array(series) }) });

const readFrom =
  (prometheusUrl: string): ReadLines =>
  async (expr, legend) => {
    const end = Date.now() / 1000;
    const query = selectAll(expr, WINDOW, `${PERIOD_SECONDS}s`);
    const range = { query, start: `${end - PERIOD_SECONDS}`, end: `${end}`, step: `${STEP_SECONDS}` };
    const response = await fetch(`${prometheusUrl}/api/v1/query_range?${new URLSearchParams(range)}`);
    return answer.parse(await response.json()).data.result.map(({ metric, values }) => ({
      legend: legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ""),
      points: values
        .map(([seconds, value]) => ({ seconds, value: Number(value) }))
        .filter(({ value }) => Number.isFinite(value)),
    }));
  };

/** Draws the panels of some rows of the dashboard as a picture, from the data of a Prometheus. */
export const drawPanels = async (
  browser: Browser,
  prometheusUrl: string,
  rows: readonly string[],
  file: string,
): Promise<void> => {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 200 } });
  await page.setContent(await panelsPage(readFrom(prometheusUrl), rows));
  await page.screenshot({ path: file, fullPage: true });
  await page.close();
};
