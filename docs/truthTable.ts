import { readdirSync, readFileSync } from "node:fs";
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

/** Formats the measured reports of docs/truth. */
export const formatTruthReports = (): string => {
  const reports = readReports();
  const runs = reports.map(({ proxy, seconds, seed }) => `${proxy}: seed ${seed}, ${seconds} s.`);
  return [runs.join(" "), formatComparison(reports), ...reports.map(formatTruthTable)].join("\n\n");
};
