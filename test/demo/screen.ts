import type { ChainStatus, FlashblockStatus } from "../../src/admin/status.ts";
import { savedShare, type Totals, unitShare } from "./figures.ts";
import type { Tried } from "./tries.ts";

/** The parts of a chain's status that are shown. */
export type ShownStatus = Pick<ChainStatus, "latest" | "pending" | "flashblocks">;

export interface ShownAct {
  readonly text: string;
  readonly isOver: boolean;
}

/** What the demo shows at one time. */
export interface Shown {
  /** Since the first call of a wallet. */
  readonly seconds: number;
  readonly url: string;
  readonly statusUrl: string;
  readonly opsUrl: string;
  readonly chainId: number;
  /** Undefined before the first response. */
  readonly status: ShownStatus | undefined;
  readonly totals: Totals;
  readonly recent: Totals;
  /** Shares of units of the intervals so far, oldest first. */
  readonly shares: readonly number[];
  /** Results of calls that were still right at a block. */
  readonly reused: { readonly block: number; readonly results: number } | undefined;
  readonly acts: readonly ShownAct[];
  readonly tries: readonly Tried[];
}

/** The time that "recent" means. */
export const RECENT_SECONDS = 10;
const FLASHBLOCKS = 5;
const LABEL_WIDTH = 28;
const VALUE_WIDTH = 12;
const LEVELS = "▁▂▃▄▅▆▇█";
const MAX_BARS = 40;

export const formatCount = (count: number): string => count.toLocaleString("en-US");

export const formatShare = (share: number | undefined): string =>
  share === undefined ? "-" : `${(100 * share).toFixed(1)} %`;

/** Draws the newest shares; 100 % and more is the highest bar. */
const formatBars = (shares: readonly number[]): string =>
  shares
    .slice(-MAX_BARS)
    .map((share) => LEVELS[Math.min(LEVELS.length - 1, Math.floor(share * LEVELS.length))])
    .join("");

const row = (label: string, recent: string, total: string, more = ""): string =>
  `${label.padEnd(LABEL_WIDTH)}${recent.padStart(VALUE_WIDTH)}${total.padStart(VALUE_WIDTH)}  ${more}`.trimEnd();

const formatPending = ({ pending: { number, feedAgeMs } }: ShownStatus): string =>
  `pending ${number ?? "-"}, ${feedAgeMs === null ? "no feed" : `${Math.round(feedAgeMs)} ms old`}`;

const formatHead = (status: ShownStatus | undefined): string =>
  status === undefined ? "head -" : `head ${status.latest?.number ?? "-"}   ${formatPending(status)}`;

const formatFlashblock = ({ number, index, transactions, gasUsed, ageMs }: FlashblockStatus): string =>
  `  ${`${number}-${index}`.padEnd(10)}${formatCount(transactions).padStart(4)} transactions${formatCount(gasUsed).padStart(12)} gas` +
  `${`${formatCount(Math.round(ageMs))} ms`.padStart(12)}`;

const formatReused = (reused: Shown["reused"]): string =>
  reused === undefined ? "-" : `${formatCount(reused.results)} at block ${reused.block}`;

const formatFigures = ({ totals, recent, shares, reused }: Shown): readonly string[] => [
  row("", `last ${RECENT_SECONDS} s`, "in all"),
  row("calls of wallets", formatCount(recent.walletCalls), formatCount(totals.walletCalls)),
  row("calls that reached a node", formatCount(recent.nodeCalls), formatCount(totals.nodeCalls)),
  row("share of provider units", formatShare(unitShare(recent)), formatShare(unitShare(totals)), formatBars(shares)),
  row("failed calls", formatCount(recent.failed), formatCount(totals.failed)),
  `calls still valid           ${formatReused(reused)}`,
];

export const formatAct = ({ text, isOver }: ShownAct): string => `${isOver ? "+" : ">"} ${text}`;

/** Formats a command with its answer. */
export const formatTry = ({ title, command, answer }: Tried): readonly string[] => [
  `# ${title}`,
  command,
  `  ${answer}`,
];

export const formatTitle = ({ url, chainId, statusUrl, opsUrl }: Omit<Shown, "status">): string =>
  `forebay: ${url} (chain ${chainId})   status page: ${statusUrl}   metrics: ${opsUrl}/metrics`;

/** Formats the screen. With less room, older flashblocks are left out. */
export const formatScreen = (shown: Shown, rows: number, columns: number): readonly string[] => {
  const { status, acts, tries } = shown;
  const begin = [
    formatTitle(shown),
    `${Math.floor(shown.seconds)} s   ${formatHead(status)}`,
    "",
    ...formatFigures(shown),
  ];
  const end = [
    ...(acts.length === 0 ? [] : ["", ...acts.map(formatAct)]),
    ...(tries.length === 0 ? [] : ["", ...tries.flatMap(formatTry)]),
    "",
    "Ctrl-C ends everything.",
  ];
  const used = [...begin, ...end].reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), 0);
  // A title and an empty line belong to them.
  const room = Math.min(FLASHBLOCKS, rows - used - 2);
  const flashblocks = (status?.flashblocks ?? []).slice(0, Math.max(0, room)).map(formatFlashblock);
  return [...begin, ...(flashblocks.length === 0 ? [] : ["", "newest flashblocks", ...flashblocks]), ...end];
};

/** Formats one line for an output that is no terminal. */
export const formatLine = (shown: Shown): string => {
  const { seconds, status, totals, recent } = shown;
  const [newest] = status?.flashblocks ?? [];
  return [
    `${String(Math.floor(seconds)).padStart(4)} s`,
    formatHead(status) + (newest === undefined ? "" : `, flashblock ${newest.number}-${newest.index}`),
    `calls of wallets ${formatCount(totals.walletCalls)}, to nodes ${formatCount(totals.nodeCalls)}`,
    `saved ${formatShare(savedShare(recent))}, units ${formatShare(unitShare(recent))}`,
    `reused ${formatReused(shown.reused)}`,
  ].join("   ");
};

/** Formats the result of a demo. */
export const formatSummary = ({ seconds, totals, recent }: Pick<Shown, "seconds" | "totals" | "recent">): string =>
  `after ${Math.floor(seconds)} s: ${formatCount(totals.walletCalls)} calls of wallets, ${formatCount(totals.failed)} failed; ` +
  `${formatCount(totals.nodeCalls)} calls reached a node: ${formatShare(savedShare(totals))} saved, and ` +
  `${formatShare(savedShare(recent))} in the last ${RECENT_SECONDS} s, at ${formatShare(unitShare(recent))} of the units`;
