import type { ScoreReport } from "../world/judge/recorder.ts";
import type { TruthReport, TruthRow } from "./truthRun.ts";

export const sumCounts = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((total, count) => total + count, 0);

const formatCounts = (counts: Readonly<Record<string, number>>): string => {
  const kinds = Object.entries(counts).map(([kind, count]) => `${kind} ${count}`);
  return kinds.length === 0 ? "0" : `${sumCounts(counts)} (${kinds.join(", ")})`;
};

const cellsOf = (score: ScoreReport): readonly string[] => {
  const { stepsBack, age } = score;
  return [
    String(score.answers),
    formatCounts(score.wrong),
    `${stepsBack.latest} / ${stepsBack.nonce} / ${stepsBack.filter}`,
    `${age.median} / ${age.p99} / ${age.longest}`,
    String(sumCounts(score.errors)),
    (score.longestStallMs / 1_000).toFixed(2),
    score.nodeCallsPer1000.toLocaleString("en"),
    score.unitsPer1000.toLocaleString("en"),
    score.notOffered.join(", "),
  ];
};

const TITLES = [
  "scenario",
  "answers",
  "wrong",
  "steps back: latest / nonce / filter",
  "age of latest, ms: median / p99 / longest",
  "errors",
  "longest stall, s",
  "node calls per 1,000",
  "units per 1,000",
  "not offered",
] as const;

/** Formats the table of one proxy, in Markdown. */
export const formatTruthTable = ({ proxy, version, rows }: TruthReport): string => {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const lineOf = ({ scenario, score }: TruthRow): string =>
    line([
      scenario,
      ...(score === undefined ? TITLES.slice(1, -1).map(() => "") : cellsOf(score)),
      ...(score === undefined ? ["the scenario"] : []),
    ]);
  return [`${proxy} ${version}`, "", line(TITLES), line(TITLES.map(() => "---")), ...rows.map(lineOf)].join("\n");
};

/** Counts the wrong answers and the steps back of all scenarios. */
export const countFaults = ({ rows }: Pick<TruthReport, "rows">): number =>
  rows.reduce(
    (total, { score }) =>
      total + (score === undefined ? 0 : sumCounts(score.wrong) + sumCounts({ ...score.stepsBack })),
    0,
  );

/** Whether each scenario that the proxy offers has answers. */
export const hasAnswers = ({ rows }: TruthReport): boolean =>
  rows.every(({ score }) => score === undefined || score.answers > 0);
