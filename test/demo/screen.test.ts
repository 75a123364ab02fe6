import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_TOTALS, type Totals } from "./figures.ts";
import { formatLine, formatScreen, formatSummary, type Shown } from "./screen.ts";
import { createPlainTerminal, createScreenTerminal } from "./terminal.ts";

const totals: Totals = { walletCalls: 2_000, walletUnits: 40_000, nodeCalls: 100, nodeUnits: 4_000, failed: 1 };
const recent: Totals = { walletCalls: 500, walletUnits: 10_000, nodeCalls: 10, nodeUnits: 200, failed: 0 };
const flashblocks = Array.from({ length: 10 }, (_, at) => ({
  ...{ number: 38, index: 9 - at, transactions: 2, gasUsed: 74_512, ageMs: 12.4 + 250 * at },
}));
const shown: Shown = {
  ...{ seconds: 61.7, url: "http://127.0.0.1:1/devnet", statusUrl: "http://127.0.0.1:1", opsUrl: "http://127.0.0.1:2" },
  ...{ chainId: 901, totals, recent, shares: [1.2, 0.5, 0.02], reused: { block: 36, results: 212 } },
  status: {
    ...{ latest: { number: 37, ageSeconds: 1 }, pending: { mode: "live", number: 38, feedAgeMs: 12.4 } },
    flashblocks,
  },
  acts: [
    { text: "the node was killed", isOver: true },
    { text: "forebay restarts", isOver: false },
  ],
  tries: [{ title: "a read", command: "curl -s x", answer: "42" }],
};

test("the screen has the address, the figures, the flashblocks, what happened, and the commands", () => {
  const lines = formatScreen(shown, 40, 120);
  assert.deepEqual(lines, [
    "forebay: http://127.0.0.1:1/devnet (chain 901)   status page: http://127.0.0.1:1   metrics: http://127.0.0.1:2/metrics",
    "61 s   head 37   pending 38, 12 ms old",
    "",
    "                               last 10 s      in all",
    "calls of wallets                     500       2,000",
    "calls that reached a node             10         100",
    "share of provider units            2.0 %      10.0 %  █▅▁",
    "failed calls                           0           1",
    "calls still valid           212 at block 36",
    "",
    "newest flashblocks",
    "  38-9         2 transactions      74,512 gas       12 ms",
    "  38-8         2 transactions      74,512 gas      262 ms",
    "  38-7         2 transactions      74,512 gas      512 ms",
    "  38-6         2 transactions      74,512 gas      762 ms",
    "  38-5         2 transactions      74,512 gas    1,012 ms",
    "",
    "+ the node was killed",
    "> forebay restarts",
    "",
    "# a read",
    "curl -s x",
    "  42",
    "",
    "Ctrl-C ends everything.",
  ]);
});

test("with less room, the screen leaves out older flashblocks", () => {
  const wide = formatScreen(shown, 23, 120);
  assert.equal(wide.length, 23);
  assert.equal(wide.filter((line) => line.includes("transactions")).length, 3);
  // On a narrow terminal, the title takes two rows.
  const narrow = formatScreen(shown, 23, 80);
  assert.equal(narrow.filter((line) => line.includes("transactions")).length, 2);
  assert.ok(!formatScreen(shown, 10, 120).includes("newest flashblocks"));
});

test("a line and the summary have the figures", () => {
  assert.equal(
    formatLine(shown),
    "  61 s   head 37   pending 38, 12 ms old, flashblock 38-9   calls of wallets 2,000, to nodes 100   saved 98.0 %, units 2.0 %   reused 212 at block 36",
  );
  assert.equal(
    formatSummary(shown),
    "after 61 s: 2,000 calls of wallets, 1 failed; 100 calls reached a node: 95.0 % saved, and 98.0 % in the last 10 s, at 2.0 % of the units",
  );
  const first = { ...shown, status: undefined, totals: NO_TOTALS, recent: NO_TOTALS, reused: undefined };
  assert.equal(formatLine(first), "  61 s   head -   calls of wallets 0, to nodes 0   saved -, units -   reused -");
});

test("the screen is drawn over itself, and left at the end", () => {
  const written: string[] = [];
  const terminal = createScreenTerminal({ write: (text) => written.push(text), rows: 40, columns: 120 });
  terminal.begin(shown);
  terminal.show(shown);
  terminal.end(shown);
  const [enter, first, second, leave, last] = written;
  assert.equal(enter, "\x1b[?1049h\x1b[?25l");
  assert.ok(first?.startsWith("\x1b[Hforebay: "));
  assert.equal(first, second);
  assert.equal(leave, "\x1b[?25h\x1b[?1049l");
  assert.ok(last?.startsWith("forebay: ") && !last.includes("\x1b") && !last.includes("Ctrl-C"));
});

test("plain lines have no control codes, and each event once", () => {
  const written: string[] = [];
  const terminal = createPlainTerminal((text) => written.push(text));
  terminal.begin(shown);
  terminal.show(shown);
  // A line every 5 s is enough.
  terminal.show({ ...shown, seconds: shown.seconds + 1 });
  for (const act of shown.acts) {
    terminal.act(act);
  }
  terminal.tries(shown.tries);
  terminal.end(shown);
  const text = written.join("");
  assert.ok(!text.includes("\x1b"));
  assert.match(
    text,
    /^forebay: .*\n.*\n\n {2}61 s .*\n\+ the node.*\n> forebay.*\n\n# a read\ncurl -s x\n {2}42\n\nCtrl-C ends/,
  );
});
