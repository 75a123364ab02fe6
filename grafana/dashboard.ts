import { writeFileSync } from "node:fs";
import { VARIABLES } from "./queries.ts";
import type { Panel, Row } from "./row.ts";
import { ROWS } from "./rows.ts";

const DATASOURCE = { type: "prometheus", uid: "$" + "{datasource}" };
const COLUMNS = 24;
/** Panels of a line, and their height, by kind. */
const SIZES = { graph: { aLine: 3, height: 8 }, value: { aLine: 4, height: 4 } } as const;

const sizeOf = ({ levels }: Panel) => SIZES[levels === undefined ? "graph" : "value"];

const graphOf = ({ unit, stacked }: Panel) => ({
  type: "timeseries",
  fieldConfig: {
    defaults: {
      unit,
      min: 0,
      custom: {
        drawStyle: "line",
        lineWidth: 1,
        fillOpacity: stacked ? 30 : 5,
        showPoints: "never",
        stacking: { mode: stacked ? "normal" : "none", group: "A" },
      },
    },
    overrides: [],
  },
  options: {
    legend: { displayMode: "list", placement: "bottom", showLegend: true },
    tooltip: { mode: "multi", sort: "desc" },
  },
});

const statOf = ({ unit, levels = [], today }: Panel) => ({
  type: "stat",
  fieldConfig: {
    defaults: {
      unit,
      thresholds: { mode: "absolute", steps: levels.map(({ from, color }) => ({ color, value: from })) },
    },
    overrides: [],
  },
  options: {
    colorMode: "value",
    graphMode: today ? "none" : "area",
    textMode: "value_and_name",
    reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
  },
});

const createPanel = (panel: Panel, id: number, x: number, y: number) => ({
  id,
  title: panel.title,
  description: panel.description,
  datasource: DATASOURCE,
  gridPos: { x, y, w: COLUMNS / sizeOf(panel).aLine, h: sizeOf(panel).height },
  targets: panel.queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode("A".charCodeAt(0) + index),
    datasource: DATASOURCE,
    expr,
    legendFormat: legend,
    ...(panel.today ? { instant: true, range: false } : { range: true }),
  })),
  ...(panel.today && { timeFrom: "now/d" }),
  ...(panel.levels === undefined ? graphOf(panel) : statOf(panel)),
});

const createRow = (title: string, id: number, y: number) => ({
  id,
  type: "row",
  title,
  collapsed: false,
  gridPos: { x: 0, y, w: COLUMNS, h: 1 },
  panels: [],
});

/** Returns the panels of a row from left to right, line by line, and the height of all lines. All have one size. */
const arrange = ({ title, panels }: Row) => {
  const [first] = panels;
  if (first === undefined || panels.some((panel) => sizeOf(panel) !== sizeOf(first))) {
    throw new Error(`the row ${title} needs panels of one size`);
  }
  const { aLine, height } = sizeOf(first);
  const places = panels.map((panel, index) => ({
    panel,
    x: (index % aLine) * (COLUMNS / aLine),
    y: Math.floor(index / aLine) * height,
  }));
  return { places, height: Math.ceil(panels.length / aLine) * height };
};

const createPanels = () => {
  const panels: (ReturnType<typeof createPanel> | ReturnType<typeof createRow>)[] = [];
  let y = 0;
  for (const row of ROWS) {
    panels.push(createRow(row.title, panels.length + 1, y));
    y += 1;
    const { places, height } = arrange(row);
    for (const { panel, x, y: line } of places) {
      panels.push(createPanel(panel, panels.length + 1, x, y + line));
    }
    y += height;
  }
  return panels;
};

/** The label that a variable selects, and a series that has it. */
const SOURCES: Readonly<Record<(typeof VARIABLES)[number], string>> = {
  namespace: "forebay_requests_in_flight",
  job: 'forebay_requests_in_flight{namespace=~"$namespace"}',
  chain: 'forebay_chain_serving{namespace=~"$namespace",job=~"$job"}',
  instance: 'forebay_requests_in_flight{namespace=~"$namespace",job=~"$job"}',
  node: 'forebay_upstream_breaker_open{namespace=~"$namespace",job=~"$job",chain=~"$chain"}',
};

const titleOf = (name: string): string => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;

/** A variable with every value of one label. `All` also matches series without the label. */
const createVariable = (name: (typeof VARIABLES)[number]) => ({
  type: "query",
  name,
  label: titleOf(name),
  datasource: DATASOURCE,
  query: { query: `label_values(${SOURCES[name]}, ${name})`, refId: name },
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  allValue: ".*",
  current: { selected: true, text: ["All"], value: ["$__all"] },
});

/** The dashboard as Grafana reads it. */
export const formatDashboard = (): string => {
  const dashboard = {
    uid: "forebay",
    title: "forebay",
    description: "One JSON-RPC endpoint in front of Ethereum and OP-stack nodes",
    tags: ["forebay", "ethereum"],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    templating: {
      list: [
        { type: "datasource", name: "datasource", label: "Data source", query: "prometheus", current: {} },
        ...VARIABLES.map(createVariable),
      ],
    },
    annotations: { list: [] },
    panels: createPanels(),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
};

if (import.meta.main) {
  writeFileSync(new URL("dashboard.json", import.meta.url), formatDashboard());
}
