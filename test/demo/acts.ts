import { setTimeout as sleep } from "node:timers/promises";
import { rpc } from "../support/clients/rpc.ts";
import { subtractTotals, type Totals, unitShare } from "./figures.ts";
import { HISTORY_BLOCKS, HISTORY_QUERY } from "./historyNode.ts";
import { formatCount, formatShare } from "./screen.ts";
import type { Stack } from "./stack.ts";

/** What the demo does by itself. */
export interface Act {
  /** Shown while it lasts. */
  readonly begins: string;
  /** Returns what happened. */
  play(): Promise<string>;
}

export type ActStack = Pick<
  Stack,
  "totals" | "killNode" | "restart" | "historyUrl" | "historyNodeUrl" | "historyCalls"
>;

const KILLED_MS = 3_000;
/** The time over which the share of units is counted, before and after the restart. */
const WINDOW_MS = 8_000;

const formatSeconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 100 ? 3 : 1)} s`;

const killAct = ({ totals, killNode }: ActStack, signal: AbortSignal): Act => ({
  begins: `node "own" is killed for ${KILLED_MS / 1_000} s`,
  play: async () => {
    const before = totals();
    const startMs = performance.now();
    const revive = await killNode();
    await sleep(KILLED_MS, undefined, { signal });
    await revive();
    const { walletCalls, failed } = subtractTotals(totals(), before);
    const seconds = formatSeconds(performance.now() - startMs);
    return `node "own" was killed for ${seconds}: "backup" took over, ${formatCount(walletCalls)} calls of wallets, ${failed} failed`;
  },
});

/** Counts a time from now on. */
const countWindow = async (totals: () => Totals, signal: AbortSignal): Promise<Totals> => {
  const before = totals();
  await sleep(WINDOW_MS, undefined, { signal });
  return subtractTotals(totals(), before);
};

const restartAct = ({ totals, restart }: ActStack, signal: AbortSignal): Act => ({
  begins: "forebay restarts",
  play: async () => {
    const before = await countWindow(totals, signal);
    const startMs = performance.now();
    await restart();
    const seconds = formatSeconds(performance.now() - startMs);
    const after = await countWindow(totals, signal);
    const shares = `${formatShare(unitShare(before))} of the units before, ${formatShare(unitShare(after))} after`;
    return `forebay restarted in ${seconds} (wallets waited): ${shares}, ${after.failed} failed`;
  },
});

/** Reads logs. Returns their number, the time and all calls to the node meanwhile, those that follow its heads too. */
const readLogs = async ({ historyUrl, historyCalls }: ActStack): Promise<{ logs: number; text: string }> => {
  const before = historyCalls();
  const startMs = performance.now();
  const { body } = await rpc(historyUrl, "eth_getLogs", [HISTORY_QUERY]);
  const seconds = formatSeconds(performance.now() - startMs);
  if (!Array.isArray(body.result)) {
    throw new Error(`no logs: ${body.error?.message}`);
  }
  return { logs: body.result.length, text: `${historyCalls() - before} calls to the node, ${seconds}` };
};

const logsAct = (stack: ActStack): Act => ({
  begins: `${formatCount(HISTORY_BLOCKS)} blocks of logs are read, twice`,
  play: async () => {
    const { body: direct } = await rpc(stack.historyNodeUrl, "eth_getLogs", [HISTORY_QUERY]);
    const refused = direct.error === undefined ? "" : " (the node alone refuses the query)";
    const first = await readLogs(stack);
    const second = await readLogs(stack);
    return `${formatCount(HISTORY_BLOCKS)} blocks, ${formatCount(first.logs)} logs${refused}: ${first.text}; again: ${second.text}`;
  },
});

export const createActs = (stack: ActStack, signal: AbortSignal): readonly Act[] => [
  killAct(stack, signal),
  restartAct(stack, signal),
  logsAct(stack),
];
