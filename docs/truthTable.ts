import { readdirSync, readFileSync } from "node:fs";
import type { ScoreReport } from "../test/truth/score.ts";
import type { TruthReport } from "../test/truth/truthRun.ts";
import { formatTruthTable, sumCounts } from "../test/truth/truthTable.ts";

const FOLDER = new URL("truth/", import.meta.url);

const readReports = (): readonly TruthReport[] =>
  readdirSync(FOLDER)
    .toSorted()
    .map((name): TruthReport => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")));

/** Formats wrong answers, steps back and errors of all reports, a column for each proxy. */
const formatComparison = (reports: readonly TruthReport[]): string => {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const names = [...new Set(reports.flatMap(({ rows }) => rows.map(({ scenario }) => scenario)))];
  const cellOf = ({ rows }: TruthReport, name: string): string => {
    const score = rows.find(({ scenario }) => scenario === name)?.score;
    return score === undefined
      ? "not offered"
      : `${sumCounts(score.wrong)} / ${sumCounts({ ...score.stepsBack })} / ${sumCounts(score.errors)} of ${score.calls}`;
  };
  return [
    line(["wrong / steps back / errors of all calls", ...reports.map(({ proxy, version }) => `${proxy} ${version}`)]),
    line(["---", ...reports.map(() => "---")]),
    ...names.map((name) => line([name, ...reports.map((report) => cellOf(report, name))])),
  ].join("\n");
};

/** Formats the sums of each report over all its scenarios, a column for each proxy. */
export const formatTruthSums = (): string => {
  const reports = readReports();
  const row = (name: string, countOf: (score: ScoreReport) => number): string => {
    const sums = reports.map(({ rows }) =>
      rows.reduce((sum, { score }) => sum + (score === undefined ? 0 : countOf(score)), 0),
    );
    return [name, ...sums.map((sum) => sum.toLocaleString("en"))].join(" | ");
  };
  const lines = [
    ["Sums of all scenarios", ...reports.map(({ proxy, version }) => `${proxy} ${version}`)].join(" | "),
    ["---", ...reports.map(() => "---:")].join(" | "),
    row("scenarios", () => 1),
    row("calls", ({ calls }) => calls),
    row("wrong answers", ({ wrong }) => sumCounts(wrong)),
    row("a head or a nonce went back", ({ stepsBack }) => sumCounts({ ...stepsBack })),
    row("errors", ({ errors }) => sumCounts(errors)),
  ];
  return lines.map((line) => `| ${line} |`).join("\n");
};

/** Formats the measured reports of docs/truth. */
export const formatTruthReports = (): string => {
  const reports = readReports();
  const runs = reports.map(({ proxy, seconds, seed }) => `${proxy}: seed ${seed}, ${seconds} s.`);
  return [runs.join(" "), formatComparison(reports), ...reports.map(formatTruthTable)].join("\n\n");
};
