import { RETRY_LIMITS, RETRY_RULES, type RetryRule } from "../src/core/retryPolicy.ts";

const NODE: Readonly<Record<RetryRule["node"], string>> = { never: "-", sameNode: "same node" };
const POOL: Readonly<Record<RetryRule["pool"], string>> = {
  never: "-",
  otherNode: "other nodes",
  anyNode: "all other nodes: no attempt",
  sameNodeLater: "other nodes, then the best one again",
};
const LOGS: Readonly<Record<RetryRule["logs"], string>> = {
  never: "-",
  otherNode: "other nodes",
  nextRound: "other nodes, then all again",
  split: "smaller ranges, or other nodes",
};
const VIEW: Readonly<Record<RetryRule["view"], string>> = {
  never: "-",
  newView: "in a new view",
  waitForView: "in a new view, also after a delay",
};

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/**
 * The longest total of all delays of each policy, in milliseconds. A policy's total contains those of the policies in it.
 * `lacking`: the nodes that do not have the data, which are no attempts.
 */
export const longestWaitsMs = (
  attempts: number,
  lacking = 0,
): { hang: number; node: number; pool: number; logs: number; view: number } => {
  const { quietMs, connectMs, answerMs } = RETRY_LIMITS.hang;
  const node = sum(RETRY_LIMITS.node.delaysMs);
  const backOffs = Array.from({ length: attempts - 1 }, (_, index) => RETRY_LIMITS.pool.firstDelayMs * 2 ** index);
  const pool = (attempts + lacking) * node + sum(backOffs);
  const logs = sum(RETRY_LIMITS.logs.delaysMs);
  const { maxViews, delaysMs, maxRefreshMs } = RETRY_LIMITS.view;
  // Each round but the last ends with a new view or with a delay.
  const rounds = maxViews + delaysMs.length;
  return {
    hang: quietMs + connectMs + answerMs,
    node,
    pool,
    logs,
    view: rounds * (Math.max(pool, logs) + maxRefreshMs) + sum(delaysMs),
  };
};

const list = (delaysMs: readonly number[]): string => `${delaysMs.slice(0, -1).join(", ")} and ${delaysMs.at(-1)} ms`;

const formatLimits = (): string[] => {
  const { hang, node, pool, logs, view } = RETRY_LIMITS;
  const attempts = pool.defaultAttempts;
  const waits = longestWaitsMs(attempts);
  const rounds = view.maxViews + view.delaysMs.length;
  return [
    "| Policy | How often | Delays | Longest total wait |",
    "|---|---|---|---|",
    `| hang | each time that a node hangs | ${hang.quietMs} ms without a byte, up to ${hang.connectMs} ms to connect a probe, ${hang.answerMs} ms for its response | ${waits.hang} ms |`,
    `| node | ${node.delaysMs.length} retries on one node | ${list(node.delaysMs)} | ${waits.node} ms |`,
    `| pool | \`chains[].upstream.attempts\` in all (${attempts}) | ${pool.firstDelayMs} ms before the second attempt, then twice as long each time; none before a node that was not tried. Nodes that lack the data are tried beside these, and each adds up to ${waits.node} ms | ${attempts} × ${waits.node} + ${waits.pool - attempts * waits.node} = ${waits.pool} ms, with at most ${attempts} nodes |`,
    `| logs | ${logs.delaysMs.length} more rounds over the nodes, for each fetch range | ${list(logs.delaysMs)} | ${waits.logs} ms |`,
    `| view | ${view.maxViews} views, and ${view.delaysMs.length} retries after a delay | up to ${view.maxRefreshMs} ms to refresh heads; ${list(view.delaysMs)} | ${rounds} × (${waits.pool} + ${view.maxRefreshMs}) + ${sum(view.delaysMs)} = ${waits.view} ms |`,
  ];
};

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** One row for all causes with the same rule. */
const formatRules = (): string[] => {
  const rows = new Map<string, [cause: string, meaning: string][]>();
  for (const [cause, { meaning, node, pool, logs, view }] of Object.entries(RETRY_RULES)) {
    const rule = `${NODE[node]} | ${POOL[pool]} | ${LOGS[logs]} | ${VIEW[view]}`;
    rows.set(rule, [...(rows.get(rule) ?? []), [cause, meaning]]);
  }
  return [...rows].map(([rule, causes]) => {
    const names = causes.map(([cause]) => `\`${cause}\``).join(", ");
    return `| ${names} | ${causes.map(([, meaning]) => sentence(meaning)).join(" ")} | ${rule} |`;
  });
};

/** Both tables of docs/nodes.md. */
export const formatRetriesTable = (): string =>
  [
    ...formatLimits(),
    "",
    "| Cause | Meaning | Node | Pool | Logs | View |",
    "|---|---|---|---|---|---|",
    ...formatRules(),
  ].join("\n");
