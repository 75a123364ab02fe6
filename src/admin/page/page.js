// The browser draws `status.json` once a second while the page is visible. All values are inserted as text and never as HTML.

const POLL_MS = 1000;
const SAMPLES = 120;
// The path may contain a key: /KEY and /KEY/status.json.
const FOLDER = location.pathname.replace(/\/+$/, "");
const MODES = { live: "good", native: "good", node: "", none: "", unverified: "warn", degraded: "warn", stale: "bad" };
const history = new Map();
const node = (name, attributes, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value) {
      element.setAttribute(key, value);
    }
  }
  element.append(...children);
  return element;
};
const count = (value) => (value === null ? "–" : value.toLocaleString("en"));
const age = (seconds) => {
  if (seconds === null) {
    return "";
  }
  const s = Math.max(0, seconds);
  if (s < 10) {
    return `${s.toFixed(1)} s ago`;
  }
  if (s < 120) {
    return `${Math.round(s)} s ago`;
  }
  return s < 7200 ? `${Math.round(s / 60)} min ago` : `${Math.round(s / 3600)} h ago`;
};
const tile = (name, value, below) =>
  node("div", {}, node("dt", {}, name), node("dd", {}, value, node("small", {}, below || "")));
const head = (name, at, label) =>
  tile(
    name,
    at === null ? "–" : count(at.number),
    at === null ? "" : [age(at.ageSeconds), label].filter(Boolean).join(", "),
  );
const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);
const bytes = (value) => (value < 1e6 ? `${Math.round(value / 1e3)} kB` : `${(value / 1e6).toFixed(1)} MB`);
const milliseconds = (value) => (value === null ? "–" : `${value.toFixed(value < 10 ? 1 : 0)} ms`);
// A narrow screen shows each row as a list, with the names of the columns.
const table = (columns, rows, kind) =>
  node(
    "table",
    { class: kind },
    node("thead", {}, node("tr", {}, ...columns.map((text) => node("th", {}, text)))),
    node(
      "tbody",
      {},
      ...rows.map((cells) =>
        node(
          "tr",
          {},
          ...cells.map((cell, i) =>
            node("td", { "data-name": columns[i], class: cell.kind }, ...[cell.content ?? cell].flat()),
          ),
        ),
      ),
    ),
  );
const line = (values) => {
  const top = Math.max(1, ...values);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${SAMPLES - 1} 34`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  drawn.setAttribute(
    "points",
    values.map((v, i) => `${SAMPLES - values.length + i},${(32 - (30 * v) / top).toFixed(1)}`).join(" "),
  );
  svg.append(drawn);
  return node(
    "figure",
    {},
    svg,
    node("figcaption", {}, `Requests per second in the last two minutes, highest ${Math.max(...values).toFixed(1)}`),
  );
};
const lastError = (error) => (error === null ? "–" : `${error.text}, ${age(error.ageSeconds)}`);
const stateOf = (n) => n.reason ?? (n.breakerOpen ? "suspended" : n.headsIgnored ? "heads ignored" : "in use");
const drawNodes = (nodes) =>
  table(
    ["Node", "State", "Head", "Behind", "Latency", "Share", "Errors", "Units", "Last error"],
    nodes.map((n) => [
      n.name,
      { content: stateOf(n), kind: n.breakerOpen ? "bad" : n.headsIgnored ? "warn" : "good" },
      count(n.head),
      count(n.lagBlocks),
      milliseconds(n.latencyMs),
      share(n.share),
      count(n.errors),
      count(Math.round(n.units)),
      { content: lastError(n.lastError), kind: "last" },
    ]),
    "nodes",
  );
const drawFlashblocks = (flashblocks) => {
  const top = Math.max(1, ...flashblocks.map((f) => f.gasUsed));
  return table(
    ["Flashblock", "Transactions", "Age", "Gas"],
    flashblocks.map((f) => {
      const bar = node("i", { title: `${count(f.gasUsed)} gas` });
      bar.style.width = `${(100 * f.gasUsed) / top}%`;
      return [
        `${count(f.number)} / ${f.index}`,
        count(f.transactions),
        `${(f.ageMs / 1000).toFixed(1)} s`,
        { content: bar, kind: "bar" },
      ];
    }),
  );
};
const drawToday = (today) =>
  node(
    "section",
    { class: "today" },
    node("div", { class: "title" }, node("h2", {}, "Today"), node("span", { class: "id" }, `${today.day} (UTC)`)),
    node(
      "dl",
      {},
      tile("Units spent", count(Math.round(today.spent.units)), `${count(today.spent.calls)} calls to nodes`),
      tile("Units saved", count(Math.round(today.saved.units)), `${count(today.saved.calls)} calls`),
      tile("Calls of clients", count(today.calls)),
    ),
  );
const drawTrust = ({ knownState, proofs, heads }) =>
  node(
    "dl",
    {},
    tile("Known state", count(knownState.values), `values, ${bytes(knownState.bytes)}`),
    tile("Reads from it", share(knownState.readShare), "of state and calls"),
    ...(proofs === null
      ? []
      : [
          tile(
            "Proven answers",
            share(proofs.proven),
            `checked ${share(proofs.checked)}, stated ${share(proofs.stated)}`,
          ),
        ]),
    ...(heads === null ? [] : [tile("Agreed head", share(heads.agreed), `linked ${share(heads.linked)}`)]),
  );
const drawChain = (chain) => {
  const samples = [...(history.get(chain.name) || []), chain.requestsPerSecond].slice(-SAMPLES);
  history.set(chain.name, samples);
  const { pending } = chain;
  const feed = pending.feedAgeMs === null ? "" : `feed ${age(pending.feedAgeMs / 1000)}`;
  return node(
    "section",
    { "data-chain": chain.name },
    node(
      "div",
      { class: "title" },
      node("h2", {}, chain.name),
      node("span", { class: "id" }, chain.chainId === null ? "" : `chain ${chain.chainId}`),
      node("span", { class: `mode ${MODES[pending.mode]}` }, `pending: ${pending.mode}`),
    ),
    node(
      "dl",
      {},
      tile("Node calls saved", count(chain.saved.calls), `${count(Math.round(chain.saved.units))} units`),
      tile("Cache hits", share(chain.hitRatio)),
      tile("Requests/s", chain.requestsPerSecond.toFixed(chain.requestsPerSecond < 10 ? 1 : 0)),
      head("Latest", chain.latest, chain.head),
      head("Safe", chain.safe),
      head("Finalized", chain.finalized),
      tile("Pending", count(pending.number), feed),
    ),
    ...chain.forwarded.map(({ text }) =>
      node("p", { class: "warn" }, `Nodes answer most calls, and bill more: ${text}`),
    ),
    line(samples),
    drawTrust(chain),
    node("h3", {}, "Nodes"),
    drawNodes(chain.nodes),
    ...(chain.flashblocks.length === 0 ? [] : [node("h3", {}, "Last flashblocks"), drawFlashblocks(chain.flashblocks)]),
  );
};
const showState = (text, kind) => {
  const state = document.getElementById("state");
  state.textContent = text;
  state.className = kind;
};
const poll = async () => {
  if (!document.hidden) {
    try {
      const response = await fetch(`${FOLDER}/status.json`, {
        cache: "no-store",
        signal: AbortSignal.timeout(5 * POLL_MS),
      });
      if (!response.ok) {
        throw new Error(response.status);
      }
      const status = await response.json();
      document.getElementById("about").textContent =
        `${status.version}, up ${age(status.uptimeSeconds).replace(" ago", "")}`;
      document
        .querySelector("main")
        .replaceChildren(...(status.today === null ? [] : [drawToday(status.today)]), ...status.chains.map(drawChain));
      showState(status.draining ? "draining" : "serving", status.draining ? "warn" : "good");
    } catch {
      showState("no response, retrying", "bad");
    }
  }
  setTimeout(poll, POLL_MS);
};
poll();
