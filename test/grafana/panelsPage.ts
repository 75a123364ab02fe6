import type { Panel } from "../../grafana/row.ts";
import { ROWS } from "../../grafana/rows.ts";

/** One line of a panel: its legend and its points, in order of time. */
export interface Line {
  readonly legend: string;
  readonly points: readonly { readonly seconds: number; readonly value: number }[];
}

export type ReadLines = (expr: string, legend: string) => Promise<readonly Line[]>;

const WIDTH = 400;
const HEIGHT = 130;
const COLOURS = ["#2f7fb8", "#2c8a5b", "#c2473d", "#a76a10", "#7a5bb5", "#2a9d9d", "#b8508f", "#68727f"];
const MAX_LEGENDS = 8;

const STYLE = `
body { font: 13px/1.4 system-ui, sans-serif; margin: 16px; color: #1c2430; background: #f6f7f9; }
h2 { font-size: 16px; margin: 24px 0 8px; } h3 { font-size: 13px; margin: 0 0 6px; }
.row { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 12px; }
.panel { background: #fff; border: 1px solid #e3e6eb; border-radius: 8px; padding: 12px; }
.legend { color: #68727f; font-size: 12px; } .legend span { margin-right: 10px; white-space: nowrap; }
`;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const SIZES: readonly (readonly [number, string])[] = [
  [1024 ** 3, " GiB"],
  [1024 ** 2, " MiB"],
  [1024, " KiB"],
];

const formatValue = (value: number, unit: Panel["unit"]): string => {
  if (unit === "percentunit") {
    return `${(value * 100).toFixed(0)} %`;
  }
  if (unit === "s") {
    return value < 1 ? `${(value * 1000).toFixed(1)} ms` : `${value.toFixed(1)} s`;
  }
  if (unit === "bytes") {
    const [size, name] = SIZES.find(([least]) => value >= least) ?? [1, " B"];
    return `${(value / size).toFixed(0)}${name}`;
  }
  if (value === 0) {
    return "0";
  }
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
};

const topOf = ({ points }: Line): number => Math.max(0, ...points.map(({ value }) => value));

const drawPanel = ({ title, unit }: Panel, all: readonly Line[]): string => {
  // The highest line is drawn and named first. A line that is always zero is drawn only if there is no other.
  const lines = all.toSorted((a, b) => topOf(b) - topOf(a));
  const points = lines.flatMap((line) => line.points);
  if (points.length === 0) {
    return `<div class="panel"><h3>${escaped(title)}</h3><p class="legend">no data</p></div>`;
  }
  const times = points.map(({ seconds }) => seconds);
  const begin = Math.min(...times);
  const span = Math.max(1, Math.max(...times) - begin);
  const top = Math.max(...lines.map(topOf));
  const drawn = lines.map((line, index) => {
    const path = line.points
      .map(({ seconds, value }) => {
        const x = ((seconds - begin) / span) * WIDTH;
        return `${x.toFixed(1)},${(HEIGHT - (value / (top || 1)) * (HEIGHT - 4) - 2).toFixed(1)}`;
      })
      .join(" ");
    return `<polyline points="${path}" fill="none" stroke="${COLOURS[index % COLOURS.length]}" stroke-width="1.5"/>`;
  });
  const named = lines.filter((line) => topOf(line) > 0).slice(0, MAX_LEGENDS);
  const legends = named.map((line, index) => {
    return `<span style="color:${COLOURS[index % COLOURS.length]}">${escaped(line.legend)}</span>`;
  });
  return `<div class="panel"><h3>${escaped(title)}</h3><div class="legend">up to ${formatValue(top, unit)}</div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" width="100%">${drawn.join("")}</svg><div class="legend">${legends.join(" ")}</div></div>`;
};

/** Creates the page with the dashboard's panels from the data of a Prometheus, without Grafana. */
export const panelsPage = async (readLines: ReadLines, titles: readonly string[]): Promise<string> => {
  const rows: string[] = [];
  for (const { title, panels } of ROWS.filter((row) => titles.includes(row.title))) {
    const drawn: string[] = [];
    for (const panel of panels) {
      const lines: Line[] = [];
      for (const { expr, legend } of panel.queries) {
        lines.push(...(await readLines(expr, legend)));
      }
      drawn.push(drawPanel(panel, lines));
    }
    rows.push(`<h2>${title}</h2><div class="row">${drawn.join("")}</div>`);
  }
  return `<!doctype html><meta charset="utf-8"><title>forebay</title><style>${STYLE}</style>${rows.join("")}`;
};
