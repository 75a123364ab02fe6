import { readdirSync, readFileSync } from "node:fs";
import type { TruthReport } from "../test/truth/truthRun.ts";
import { sumCounts } from "../test/truth/truthTable.ts";
import type { ScoreReport } from "../test/world/judge/recorder.ts";

const FOLDER = new URL("truth/", import.meta.url);

const readReports = (): readonly TruthReport[] =>
  readdirSync(FOLDER)
    .toSorted()
    .map((name): TruthReport => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")));

const scoresOf = ({ rows }: TruthReport, isPart: (scenario: string) => boolean): readonly ScoreReport[] =>
  rows.flatMap(({ scenario, score }) => (score !== undefined && isPart(scenario) ? [score] : []));

/** The rows of the table: scenarios of one kind together. A scenario belongs to the first one that its name matches. */
const KINDS: readonly (readonly [title: string, names: RegExp])[] = [
  ["all scenarios, in turn on one chain", /, in turn$/],
  ["honest nodes; two replicas", /^(?:honest|two replicas)$/],
  [
    "a node lags by 1, 5, 50 or more and more blocks, learns late, or has machines that differ",
    /^la|^sawtooth|^machines/,
  ],
  ["a node hangs, or answers 429, 503, a quota, HTML or half a body", /^(?:hang|429|503|quota|HTML|half)/],
  ["lies: numbers, hashes, logs, `null`, heads, state, receipts", /^lies/],
  ["reorganisations; a node on another chain", /^(?:reorg|another)/],
  ["nodes refuse ranges of logs", /^log ranges/],
  ["the proxy is killed and started again", /^restart/],
  ["the feed loses, repeats or corrupts messages", /^feed/],
];

const kindOf = (scenario: string): string => {
  const [title] = KINDS.find(([, names]) => names.test(scenario)) ?? [];
  if (title === undefined) {
    throw new Error(`the scenario ${scenario} belongs to no row of docs/truth.md`);
  }
  return title;
};

/** Formats the measured reports of docs/truth: wrong answers, steps back and errors, a column for each proxy. */
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
  return [
    reports.map(({ proxy, seconds, seed }) => `${proxy}: seed ${seed}, ${seconds} s.`).join(" "),
    "",
    line(["wrong / steps back / errors of all calls", ...reports.map(({ proxy, version }) => `${proxy} ${version}`)]),
    line(["---", ...reports.map(() => "---")]),
    ...KINDS.map(([title]) =>
      line([title, ...reports.map((report) => cellOf(report, (scenario) => kindOf(scenario) === title))]),
    ),
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
