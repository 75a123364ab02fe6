/**
 * The browser's JavaScript. It draws `status.json` once a second while the page is visible.
 * It inserts all values as text and never as HTML.
 */
export const STATUS_PAGE_SCRIPT = `
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
const table = (columns, rows) => node("table", {},
  node("thead", {}, node("tr", {}, ...columns.map((text) => node("th", {}, text)))), node("tbody", {}, ...rows));
const line = (values) => {
  const top = Math.max(1, ...values);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 " + (SAMPLES - 1) + " 34");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Requests per second, last two minutes");
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  drawn.setAttribute("points", values.map((v, i) => (SAMPLES - values.length + i) + "," + (32 - 30 * v / top).toFixed(1)).join(" "));
  svg.append(drawn);
  return svg;
};
const drawNodes = (nodes) => table(["Node", "Head", "Behind", ""], nodes.map((n) => node("tr", {},
  node("td", {}, n.name), node("td", {}, count(n.head)), node("td", {}, count(n.lagBlocks)),
  node("td", { class: n.breakerOpen ? "bad" : n.headsIgnored ? "warn" : "good" },
    n.reason ?? (n.breakerOpen ? "suspended" : n.headsIgnored ? "heads ignored" : "in use")))));
const drawFlashblocks = (flashblocks) => {
  const top = Math.max(1, ...flashblocks.map((f) => f.gasUsed));
  return table(["Flashblock", "Transactions", "Age", "Gas"], flashblocks.map((f) => {
    const bar = node("i", { title: count(f.gasUsed) + " gas" });
    bar.style.width = 100 * f.gasUsed / top + "%";
    return node("tr", {}, node("td", {}, count(f.number) + " / " + f.index), node("td", {}, count(f.transactions)),
      node("td", {}, (f.ageMs / 1000).toFixed(1) + " s"), node("td", { class: "bar" }, bar));
  }));
};
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
      tile("Cache hits", chain.hitRatio === null ? "\\u2013" : (100 * chain.hitRatio).toFixed(1) + " %"),
      tile("Requests per second", chain.requestsPerSecond.toFixed(chain.requestsPerSecond < 10 ? 1 : 0)),
      head("Latest", chain.latest, chain.head), head("Safe", chain.safe), head("Finalized", chain.finalized),
      tile("Pending", count(pending.number), feed)),
    ...chain.forwarded.map(({ text }) => node("p", { class: "warn" }, "Nodes answer most calls, and bill more: " + text)),
    line(samples),
    node("div", { class: "columns" }, node("div", {}, node("h3", {}, "Nodes"), drawNodes(chain.nodes)),
      ...(chain.flashblocks.length === 0 ? [] : [node("div", {}, node("h3", {}, "Last flashblocks"), drawFlashblocks(chain.flashblocks))])));
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
      document.querySelector("main").replaceChildren(...status.chains.map(drawChain));
      showState(status.draining ? "draining" : "serving", status.draining ? "warn" : "good");
    } catch {
      showState("no response, retrying", "bad");
    }
  }
  setTimeout(poll, POLL_MS);
};
poll();
`;
