import { writeFileSync } from "node:fs";
import type { Panel } from "./row.ts";
import { ROWS } from "./rows.ts";

const DATASOURCE = { type: "prometheus", uid: "$" + "{datasource}" };
const COLUMNS = 24;
const PANELS_A_LINE = 3;
const PANEL_WIDTH = COLUMNS / PANELS_A_LINE;
const PANEL_HEIGHT = 8;

const createPanel = ({ title, description, unit, queries, stacked }: Panel, id: number, x: number, y: number) => ({
  id,
  type: "timeseries",
  title,
  description,
  datasource: DATASOURCE,
  gridPos: { x, y, w: PANEL_WIDTH, h: PANEL_HEIGHT },
  targets: queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode("A".charCodeAt(0) + index),
    datasource: DATASOURCE,
    expr,
    legendFormat: legend,
    range: true,
  })),
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

const createRow = (title: string, id: number, y: number) => ({
  id,
  type: "row",
  title,
  collapsed: false,
  gridPos: { x: 0, y, w: COLUMNS, h: 1 },
  panels: [],
});

const createPanels = () => {
  const panels: (ReturnType<typeof createPanel> | ReturnType<typeof createRow>)[] = [];
  let y = 0;
  for (const row of ROWS) {
    panels.push(createRow(row.title, panels.length + 1, y));
    y += 1;
    row.panels.forEach((panel, index) => {
      const line = Math.floor(index / PANELS_A_LINE);
      const x = (index % PANELS_A_LINE) * PANEL_WIDTH;
      panels.push(createPanel(panel, panels.length + 1, x, y + line * PANEL_HEIGHT));
    });
    y += Math.ceil(row.panels.length / PANELS_A_LINE) * PANEL_HEIGHT;
  }
  return panels;
};

/** A variable with every value of one label; `All` matches series that lack nothing but traffic. */
const createVariable = (name: string, label: string, query: string) => ({
  type: "query",
  name,
  label,
  datasource: DATASOURCE,
  query: { query, refId: name },
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
        createVariable("chain", "Chain", "label_values(forebay_head, chain)"),
        createVariable("instance", "Instance", "label_values(forebay_requests_in_flight, instance)"),
        createVariable("node", "Node", 'label_values(forebay_upstream_head{chain=~"$chain"}, node)'),
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
