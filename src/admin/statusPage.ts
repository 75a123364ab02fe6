import { createHash } from "node:crypto";

/**
 * The browser's JavaScript. It draws `status.json` once a second while the page is visible.
 * It inserts all values as text and never as HTML.
 */
const STATUS_PAGE_SCRIPT = `
const POLL_MS = 1000, SAMPLES = 120;
// The path may contain a key: /KEY and /KEY/status.json.
const FOLDER = location.pathname.replace(/\\/+$/, "");
const MODES = { live: "good", native: "good", node: "", none: "", unverified: "warn", degraded: "warn", stale: "bad" };
const history = new Map();
const node = (name, attributes, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const count = (value) => value === null ? "\\u2013" : value.toLocaleString("en");
const age = (seconds) => {
  if (seconds === null) return "";
  const s = Math.max(0, seconds);
  if (s < 10) return s.toFixed(1) + " s ago";
  if (s < 120) return Math.round(s) + " s ago";
  return s < 7200 ? Math.round(s / 60) + " min ago" : Math.round(s / 3600) + " h ago";
};
const tile = (name, value, below) => node("div", {}, node("dt", {}, name), node("dd", {}, value, node("small", {}, below || "")));
const head = (name, at, label) =>
  tile(name, at === null ? "\\u2013" : count(at.number), at === null ? "" : [age(at.ageSeconds), label].filter(Boolean).join(", "));
const share = (value) => value === null ? "\\u2013" : (100 * value).toFixed(1) + " %";
const bytes = (value) => value < 1e6 ? Math.round(value / 1e3) + " kB" : (value / 1e6).toFixed(1) + " MB";
const milliseconds = (value) => value === null ? "\\u2013" : value.toFixed(value < 10 ? 1 : 0) + " ms";
// A narrow screen shows each row as a list, with the names of the columns.
const table = (columns, rows, kind) => node("table", { class: kind },
  node("thead", {}, node("tr", {}, ...columns.map((text) => node("th", {}, text)))),
  node("tbody", {}, ...rows.map((cells) => node("tr", {}, ...cells.map((cell, i) =>
    node("td", { "data-name": columns[i], class: cell.kind }, ...[cell.content ?? cell].flat()))))));
const line = (values) => {
  const top = Math.max(1, ...values);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 " + (SAMPLES - 1) + " 34");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  drawn.setAttribute("points", values.map((v, i) => (SAMPLES - values.length + i) + "," + (32 - 30 * v / top).toFixed(1)).join(" "));
  svg.append(drawn);
  return node("figure", {}, svg, node("figcaption", {},
    "Requests per second in the last two minutes, highest " + Math.max(...values).toFixed(1)));
};
const lastError = (error) => error === null ? "\\u2013" : error.text + ", " + age(error.ageSeconds);
const stateOf = (n) => n.reason ?? (n.breakerOpen ? "suspended" : n.headsIgnored ? "heads ignored" : "in use");
const drawNodes = (nodes) => table(["Node", "State", "Head", "Behind", "Latency", "Share", "Errors", "Units", "Last error"],
  nodes.map((n) => [n.name, { content: stateOf(n), kind: n.breakerOpen ? "bad" : n.headsIgnored ? "warn" : "good" },
    count(n.head), count(n.lagBlocks), milliseconds(n.latencyMs), share(n.share), count(n.errors), count(Math.round(n.units)),
    { content: lastError(n.lastError), kind: "last" }]), "nodes");
const drawFlashblocks = (flashblocks) => {
  const top = Math.max(1, ...flashblocks.map((f) => f.gasUsed));
  return table(["Flashblock", "Transactions", "Age", "Gas"], flashblocks.map((f) => {
    const bar = node("i", { title: count(f.gasUsed) + " gas" });
    bar.style.width = 100 * f.gasUsed / top + "%";
    return [count(f.number) + " / " + f.index, count(f.transactions), (f.ageMs / 1000).toFixed(1) + " s", { content: bar, kind: "bar" }];
  }));
};
const drawToday = (today) => node("section", { class: "today" },
  node("div", { class: "title" }, node("h2", {}, "Today"), node("span", { class: "id" }, today.day + " (UTC)")),
  node("dl", {}, tile("Units spent", count(Math.round(today.spent.units)), count(today.spent.calls) + " calls to nodes"),
    tile("Units saved", count(Math.round(today.saved.units)), count(today.saved.calls) + " calls"),
    tile("Calls of clients", count(today.calls))));
const drawTrust = ({ knownState, proofs, heads }) => node("dl", {},
  tile("Known state", count(knownState.values), "values, " + bytes(knownState.bytes)),
  tile("Reads from it", share(knownState.readShare), "of state and calls"),
  ...(proofs === null ? [] : [tile("Proven answers", share(proofs.proven), "checked " + share(proofs.checked) + ", stated " + share(proofs.stated))]),
  ...(heads === null ? [] : [tile("Agreed head", share(heads.agreed), "linked " + share(heads.linked))]));
const drawChain = (chain) => {
  const samples = [...(history.get(chain.name) || []), chain.requestsPerSecond].slice(-SAMPLES);
  history.set(chain.name, samples);
  const { pending } = chain;
  const feed = pending.feedAgeMs === null ? "" : "feed " + age(pending.feedAgeMs / 1000);
  return node("section", { "data-chain": chain.name },
    node("div", { class: "title" }, node("h2", {}, chain.name),
      node("span", { class: "id" }, chain.chainId === null ? "" : "chain " + chain.chainId),
      node("span", { class: "mode " + MODES[pending.mode] }, "pending: " + pending.mode)),
    node("dl", {}, tile("Node calls saved", count(chain.saved.calls), count(Math.round(chain.saved.units)) + " units"),
      tile("Cache hits", share(chain.hitRatio)),
      tile("Requests/s", chain.requestsPerSecond.toFixed(chain.requestsPerSecond < 10 ? 1 : 0)),
      head("Latest", chain.latest, chain.head), head("Safe", chain.safe), head("Finalized", chain.finalized),
      tile("Pending", count(pending.number), feed)),
    ...chain.forwarded.map(({ text }) => node("p", { class: "warn" }, "Nodes answer most calls, and bill more: " + text)),
    line(samples), drawTrust(chain), node("h3", {}, "Nodes"), drawNodes(chain.nodes),
    ...(chain.flashblocks.length === 0 ? [] : [node("h3", {}, "Last flashblocks"), drawFlashblocks(chain.flashblocks)]));
};
const showState = (text, kind) => {
  const state = document.getElementById("state");
  state.textContent = text;
  state.className = kind;
};
const poll = async () => {
  if (!document.hidden) {
    try {
      const response = await fetch(FOLDER + "/status.json", { cache: "no-store", signal: AbortSignal.timeout(5 * POLL_MS) });
      if (!response.ok) throw new Error(response.status);
      const status = await response.json();
      document.getElementById("about").textContent = status.version + ", up " + age(status.uptimeSeconds).replace(" ago", "");
      document.querySelector("main").replaceChildren(...(status.today === null ? [] : [drawToday(status.today)]), ...status.chains.map(drawChain));
      showState(status.draining ? "draining" : "serving", status.draining ? "warn" : "good");
    } catch {
      showState("no response, retrying", "bad");
    }
  }
  setTimeout(poll, POLL_MS);
};
poll();
`;

/** The page's style sheet, for light and dark mode. Colour marks only states that need attention. */
const STATUS_PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --line: #e3e6eb; --text: #1c2430; --quiet: #68727f; --water: #2f7fb8; --good: #2c8a5b; --bad: #c2473d; --warn: #a76a10;
}
@media (prefers-color-scheme: dark) {
  :root { --page: #10151b; --card: #171e26; --line: #263039; --text: #dde4eb; --quiet: #8a97a5; --water: #5aa9e0; --good: #58b98a; --bad: #e5786d; --warn: #d9a04a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
header, main { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { display: flex; align-items: baseline; gap: 12px; padding-top: 28px; }
h1 { font-size: 20px; font-weight: 600; margin: 0; }
#about, .id, dt, th, .note { color: var(--quiet); }
#state { margin-left: auto; }
#state::before, .mode::before { content: ""; display: inline-block; width: 8px; height: 8px; border-radius: 50%; margin-right: 8px; background: currentColor; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; margin: 20px 0; padding: 20px 24px; }
h2 { font-size: 17px; font-weight: 600; margin: 0; }
h3 { font-size: 13px; font-weight: 600; color: var(--quiet); margin: 20px 0 6px; }
.title { display: flex; align-items: baseline; gap: 10px; flex-wrap: wrap; }
.title .mode { margin-left: auto; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); gap: 16px; margin: 18px 0 0; }
dt { font-size: 13px; } dd { margin: 0; font-size: 21px; font-weight: 500; } dd small { display: block; font-size: 13px; font-weight: 400; color: var(--quiet); }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th { text-align: left; font-weight: 400; font-size: 13px; }
th, td { padding: 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; } tr:last-child td { border-bottom: 0; }
th:not(:first-child), td:not(:first-child) { text-align: right; padding-left: 16px; }
.nodes th:nth-child(2), .nodes td:nth-child(2) { text-align: left; }
.nodes td:first-child, .nodes td:nth-child(2), td.last { white-space: normal; overflow-wrap: anywhere; }
td.last { font-size: 13px; color: var(--quiet); max-width: 240px; }
td.bar { width: 34%; vertical-align: middle; }
td.bar i { display: block; height: 8px; border-radius: 4px; min-width: 2px; margin-left: auto; background: var(--water); }
figure { margin: 14px 0 0; } figcaption { font-size: 13px; color: var(--quiet); }
svg { display: block; width: 100%; height: 34px; } polyline { fill: none; stroke: var(--water); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
@media (max-width: 760px) {
  header { flex-wrap: wrap; } section { padding: 16px; } header, main { padding-left: 12px; padding-right: 12px; }
  .nodes thead { display: none; }
  .nodes tr { display: block; padding: 6px 0; border-bottom: 1px solid var(--line); } .nodes tr:last-child { border-bottom: 0; }
  .nodes td, .nodes td:nth-child(2) { display: flex; gap: 16px; justify-content: space-between; border: 0; padding: 1px 0; max-width: none; text-align: right; }
  .nodes td:first-child { font-weight: 600; }
  .nodes td:not(:first-child)::before { content: attr(data-name); color: var(--quiet); white-space: nowrap; font-size: 14px; }
  td.bar { width: 20%; }
}
`;

const sourceHash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Allows only this page's script and style, and only requests to its own origin (CSP level 3, hash sources). */
const POLICY = [
  "default-src 'none'",
  `script-src ${sourceHash(STATUS_PAGE_SCRIPT)}`,
  // This allows a width that the script sets through the CSSOM, but no style attributes.
  `style-src ${sourceHash(STATUS_PAGE_STYLE)}`,
  "connect-src 'self'",
  "img-src data:",
].join("; ");

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>forebay</title>
<style>${STATUS_PAGE_STYLE}</style>
</head>
<body>
<header><h1>forebay</h1><span id="about"></span><span id="state" role="status">connecting</span></header>
<main></main>
<noscript><p>This page is drawn by a script. The same data as JSON: <a href="./status.json">status.json</a></p></noscript>
<script>${STATUS_PAGE_SCRIPT}</script>
</body>
</html>
`;

/** Returns the HTML of `GET /` for a browser: one self-contained page that draws `./status.json` (see Status). */
export const statusPage = (): string => PAGE;
