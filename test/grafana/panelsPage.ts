import { COLORS, drawChart, linearTicks } from "../../docs/svgChart.ts";
import type { Panel } from "../../grafana/row.ts";
import { ROWS } from "../../grafana/rows.ts";

/** One line of a panel: its legend and its points, in order of time. */
export interface Line {
  readonly legend: string;
  readonly points: readonly { readonly seconds: number; readonly value: number }[];
}

export type ReadLines = (expr: string, legend: string) => Promise<readonly Line[]>;

const WIDTH = 400;
const HEIGHT = 150;
const MAX_LEGENDS = 8;
const MINUTE = 60;

const STYLE = `
body { font: 13px/1.4 system-ui, sans-serif; margin: 16px; color: #1c2430; background: #f6f7f9; }
h2 { font-size: 16px; margin: 24px 0 8px; } h3 { font-size: 13px; margin: 0 0 6px; }
svg { width: 100%; height: auto; display: block; }
.row { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 12px; }
.panel { background: #fff; border: 1px solid #e3e6eb; border-radius: 8px; padding: 12px; }
.value { font-size: 24px; font-weight: 600; }
.legend { color: #68727f; font-size: 12px; } .legend span { margin-right: 10px; white-space: nowrap; }
`;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const SIZES: readonly (readonly [number, string])[] = [
  [1024 ** 3, " GiB"],
  [1024 ** 2, " MiB"],
  [1024, " KiB"],
];

/** The text behind the number. Sums and levels have none. */
const suffixOf = (unit: Panel["unit"]): string => {
  const names: Partial<Record<Panel["unit"], string>> = { reqps: " req/s", ops: " /s", cps: " /s" };
  return unit.startsWith("suffix:") ? ` ${unit.slice("suffix:".length)}` : (names[unit] ?? "");
};

const isBytes = (unit: Panel["unit"]): boolean => unit === "bytes" || unit === "binBps";

/** Ticks of a value axis. Those of bytes are round numbers of KiB, MiB or GiB. */
const valueTicks = (top: number, unit: Panel["unit"]): readonly number[] => {
  const size = isBytes(unit) ? (SIZES.find(([least]) => top >= least)?.[0] ?? 1) : 1;
  return linearTicks(top / size).map((tick) => tick * size);
};

const formatValue = (value: number, unit: Panel["unit"]): string => {
  if (unit === "percentunit") {
    return `${Number((value * 100).toPrecision(3))} %`;
  }
  if (unit === "s") {
    return value < 1 ? `${Number((value * 1000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`;
  }
  if (isBytes(unit)) {
    const [size, name] = SIZES.find(([least]) => value >= least) ?? [1, " B"];
    return `${Number((value / size).toPrecision(3))}${name}${unit === "binBps" ? "/s" : ""}`;
  }
  return `${value >= 1_000 ? value.toFixed(0) : Number(value.toPrecision(3))}${suffixOf(unit)}`;
};

const topOf = ({ points }: Line): number => Math.max(0, ...points.map(({ value }) => value));

/** The newest value of each line, as a panel of Grafana's kind "stat" shows it. */
const drawValues = ({ unit }: Panel, lines: readonly Line[]): string =>
  lines
    .map(({ legend, points }) => {
      const value = formatValue(points.at(-1)?.value ?? 0, unit);
      return `<div><span class="value">${value}</span> <span class="legend">${escaped(legend)}</span></div>`;
    })
    .join("");

const drawGraph = ({ unit, stacked }: Panel, lines: readonly Line[]): string => {
  const times = lines.flatMap(({ points }) => points.map(({ seconds }) => seconds));
  const end = Math.max(...times);
  const minutes = Math.max(1, Math.round((end - Math.min(...times)) / MINUTE));
  const below = new Map<number, number>();
  // A stacked panel draws the sum of each line and of those below it.
  const drawn = lines.map(({ points }, index) => ({
    color: COLORS[index % COLORS.length] ?? "",
    dots: false,
    points: points
      .filter(({ seconds }) => end - seconds <= minutes * MINUTE)
      .map(({ seconds, value }): readonly [number, number] => {
        const sum = value + (stacked ? (below.get(seconds) ?? 0) : 0);
        below.set(seconds, sum);
        return [(seconds - end) / MINUTE, sum];
      }),
  }));
  const top = Math.max(0, ...drawn.flatMap(({ points }) => points.map(([, value]) => value)));
  return drawChart({
    ...{ width: WIDTH, height: HEIGHT, lines: drawn },
    x: {
      ...{ scale: "linear", title: undefined },
      ticks: Array.from({ length: minutes + 1 }, (_, index) => index - minutes),
      format: (minute) => (minute === 0 ? "now" : `${minute} min`),
    },
    y: { scale: "linear", title: undefined, ticks: valueTicks(top, unit), format: (value) => formatValue(value, unit) },
  });
};

const drawPanel = (panel: Panel, all: readonly Line[]): string => {
  const lines = all.filter(({ points }) => points.length > 0).toSorted((a, b) => topOf(b) - topOf(a));
  const title = `<h3>${escaped(panel.title)}</h3>`;
  if (lines.length === 0) {
    return `<div class="panel">${title}<p class="legend">no data</p></div>`;
  }
  if (panel.levels !== undefined) {
    return `<div class="panel">${title}${drawValues(panel, lines)}</div>`;
  }
  // A line that is always zero is named only if there is no other.
  const named = lines.filter((line) => topOf(line) > 0);
  const legends = (named.length > 0 ? named : lines)
    .slice(0, MAX_LEGENDS)
    .map(({ legend }, index) => `<span style="color:${COLORS[index % COLORS.length]}">${escaped(legend)}</span>`);
  return `<div class="panel">${title}${drawGraph(panel, lines)}<div class="legend">${legends.join(" ")}</div></div>`;
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
