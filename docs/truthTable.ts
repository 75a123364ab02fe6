import { readdirSync, readFileSync } from "node:fs";
import type { ScoreReport } from "../test/truth/score.ts";
import type { TruthReport } from "../test/truth/truthRun.ts";
import { sumCounts } from "../test/truth/truthTable.ts";

const FOLDER = new URL("truth/", import.meta.url);

const readReports = (): readonly TruthReport[] =>
  readdirSync(FOLDER)
    .toSorted()
    .map((name): TruthReport => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")));

const scoresOf = ({ rows }: TruthReport, isPart: (scenario: string) => boolean): readonly ScoreReport[] =>
  rows.flatMap(({ scenario, score }) => (score !== undefined && isPart(scenario) ? [score] : []));

/** The end of the name of a scenario that runs after others, on one chain with all of them. */
const IN_TURN = ", in turn";

const isInTurn = (scenario: string): boolean => scenario.endsWith(IN_TURN);

/** Formats the measured reports of docs/truth: wrong answers, steps back and errors of each scenario, a column for each proxy. */
export const formatTruthReports = (): string => {
  const reports = readReports();
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const cellOf = (report: TruthReport, isPart: (scenario: string) => boolean): string => {
    const scores = scoresOf(report, isPart);
    const sumOf = (countOf: (score: ScoreReport) => number) => scores.reduce((sum, score) => sum + countOf(score), 0);
    return scores.length === 0
      ? "not offered"
      : [
          sumOf(({ wrong }) => sumCounts(wrong)),
          sumOf(({ stepsBack }) => sumCounts({ ...stepsBack })),
          `${sumOf(({ errors }) => sumCounts(errors))} of ${sumOf(({ calls }) => calls)}`,
        ].join(" / ");
  };
  const names = new Set(reports.flatMap(({ rows }) => rows.map(({ scenario }) => scenario)));
  const row = (name: string, isPart: (scenario: string) => boolean): string =>
    line([name, ...reports.map((report) => cellOf(report, isPart))]);
  return [
    reports.map(({ proxy, seconds, seed }) => `${proxy}: seed ${seed}, ${seconds} s.`).join(" "),
    "",
    line(["wrong / steps back / errors of all calls", ...reports.map(({ proxy, version }) => `${proxy} ${version}`)]),
    line(["---", ...reports.map(() => "---")]),
    ...[...names].filter((name) => !isInTurn(name)).map((name) => row(name, (scenario) => scenario === name)),
    row("all of them, in turn", isInTurn),
  ].join("\n");
};

/** Formats the sums of each report over all its scenarios, a column for each proxy. */
export const formatTruthSums = (): string => {
  const reports = readReports();
  const row = (name: string, countOf: (score: ScoreReport) => number): string => {
    const sums = reports.map((report) => scoresOf(report, () => true).reduce((sum, score) => sum + countOf(score), 0));
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
