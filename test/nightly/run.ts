import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

/**
 * `npm run nightly -- [--seconds N] [NAMES]` runs all benches, long runs and fuzzers, and the soak, one after the other, and
 * prints a table. A name is that of a kind, `bench`, or of one run, `long/reorgs`. With `--seconds`, each run is this long, and
 * benches are short. It exits with 1 if a run has no result: it threw, or did not end. A verdict is only printed.
 */
const USAGE = `npm run nightly -- [--seconds N] [NAMES], where a name is bench, long, fuzz, soak, or KIND/NAME`;
/** At most four minutes each, and two hours together. */
const SECONDS = { bench: 240, long: 60, fuzz: 60, soak: 240 } as const;
/** A bench below this time is a short one. */
const WHOLE_BENCH_SECONDS = 60;
/** Their whole form takes longer than four minutes. */
const SHORT_BENCHES: ReadonlySet<string> = new Set(["head-lateness", "peers", "replicas", "restart", "wallet-mix"]);
/** Their short form takes less. */
const SHORT_BENCH_SECONDS = 90;
/** A run prepares, ends its processes, and completes what it has begun. A busy machine takes longer. */
const MORE_MS = 360_000;
const SEEDS = 2 ** 31;
const MAX_FIGURES = 3;
const MAX_OUTPUT = 8_000;

type Kind = keyof typeof SECONDS;
type Fields = Readonly<Record<string, unknown>>;

interface Run {
  readonly kind: Kind;
  readonly name: string;
}

interface Row {
  readonly name: string;
  readonly seconds: number;
  readonly result: string;
  readonly figure: string;
}

const KINDS = Object.keys(SECONDS) as Kind[];
const FOLDERS: Partial<Record<Kind, string>> = { bench: "bench", long: "long", fuzz: "fuzz/targets" };
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Lists the runs of a kind: the files of its folder, or the kind itself. */
const runsOf = (kind: Kind): readonly Run[] => {
  const folder = FOLDERS[kind];
  if (folder === undefined) {
    return [{ kind, name: kind }];
  }
  return readdirSync(join(import.meta.dirname, "..", folder))
    .filter((file) => file.endsWith(".ts") && file !== "run.ts")
    .map((file) => ({ kind, name: `${kind}/${file.replace(".ts", "")}` }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
};

const { values, positionals } = parseArgs({ allowPositionals: true, options: { seconds: { type: "string" } } });
const seconds = values.seconds === undefined ? undefined : Number(values.seconds);
const all = KINDS.flatMap(runsOf);
const isNamed = (name: string) => (run: Run) => run.name === name || run.kind === name;
if ((seconds !== undefined && !(seconds > 0)) || !positionals.every((name) => all.some(isNamed(name)))) {
  console.error(USAGE);
  process.exit(2);
}
const chosen = all.filter((run) => positionals.length === 0 || positionals.some((name) => isNamed(name)(run)));
const seed = process.env.SEED ?? String(Math.floor(Math.random() * SEEDS));

const argumentsOf = (run: Run, length: number): readonly string[] => {
  const target = targetOf(run);
  switch (run.kind) {
    case "bench":
      return [target, "--json", ...(length < WHOLE_BENCH_SECONDS || SHORT_BENCHES.has(target) ? ["--short"] : [])];
    case "long":
      return [target, "--seconds", `${length}`];
    case "fuzz":
      return [target, "--seconds", `${length}`, "--seed", seed];
    case "soak":
      return ["--seconds", `${length}`, "--seed", seed];
  }
};

interface Ended {
  readonly output: string;
  readonly errors: string;
  /** It had to be killed. */
  readonly isLate: boolean;
}

/** Runs a script of package.json in a process group of its own, which ends with it. Returns what it wrote. */
const execute = async (run: Run, length: number): Promise<Ended> => {
  const child = spawn("npm", ["run", "-s", run.kind, "--", ...argumentsOf(run, length)], {
    ...{ detached: true, env: { ...process.env, SEED: seed } },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [exited, closed] = [once(child, "exit"), once(child, "close")];
  const end = (): void => {
    try {
      process.kill(-(child.pid ?? 0), "SIGKILL");
    } catch {
      // All its processes have ended.
    }
  };
  const stop = (): never => {
    end();
    process.exit(1);
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const texts = { output: "", errors: "", isLate: false };
  const endLate = (): void => {
    texts.isLate = true;
    end();
  };
  const timer = setTimeout(endLate, length * 1_000 + MORE_MS);
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    texts.output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    texts.errors += text;
  });
  await exited;
  clearTimeout(timer);
  end();
  await closed;
  process.off("SIGINT", stop).off("SIGTERM", stop);
  return texts;
};

/** Reads the last JSON object of an output. It begins in a line of its own. */
const resultIn = (output: string): Fields | undefined => {
  const begin = `\n${output}`.lastIndexOf("\n{");
  try {
    const value: unknown = JSON.parse(begin === -1 ? "" : output.slice(begin));
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/** Limits, and what the command says. */
const IS_GIVEN = /^(?:seed|seconds|max|limit)/;

/** Adds the numbers of a value by their names: the sum, or the largest time. Of a list, that is also its length. */
const addNumbers = (totals: Map<string, number>, name: string, value: unknown): void => {
  if (typeof value === "number" && !IS_GIVEN.test(name)) {
    const before = totals.get(name) ?? 0;
    totals.set(name, name.endsWith("Ms") ? Math.max(before, value) : before + value);
  } else if (Array.isArray(value)) {
    addNumbers(totals, name, value.length);
    for (const item of value.filter(isFields)) {
      addNumbers(totals, name, item);
    }
  } else if (isFields(value)) {
    // The numbers of an object stand before those of the objects in it.
    for (const [key, item] of Object.entries(value).toSorted(([, one], [, other]) => depthOf(one) - depthOf(other))) {
      addNumbers(totals, key, item);
    }
  }
};

const depthOf = (value: unknown): number => (typeof value === "object" ? 1 : 0);

/** The first numbers of a result. */
const figuresOf = (result: Fields): string => {
  const totals = new Map<string, number>();
  addNumbers(totals, "", result);
  return [...totals]
    .slice(0, MAX_FIGURES)
    .map(([name, value]) => `${name} ${Math.round(value * 1_000) / 1_000}`)
    .join(", ");
};

/** Undefined without a result. */
const judge = ({ kind }: Run, { output, isLate }: Ended): Pick<Row, "result" | "figure"> | undefined => {
  if (isLate) {
    return undefined;
  }
  const result = resultIn(output);
  if (result === undefined) {
    return undefined;
  }
  if (kind === "bench") {
    const { ratio, ours, yardstick, unit, unreadable } = result;
    return {
      result: unreadable === true ? "unreadable" : "measured",
      figure: `${ratio}: ours ${ours}, yardstick ${yardstick} ${unit}`,
    };
  }
  const isPassed = kind === "fuzz" ? Array.isArray(result.findings) && result.findings.length === 0 : result.passed;
  return { result: isPassed === true ? "passed" : "failed", figure: figuresOf(result) };
};

const runOne = async (run: Run): Promise<Row> => {
  const length = lengthOf(run);
  const startMs = performance.now();
  const ended = await execute(run, length);
  const judged = judge(run, ended);
  if (judged?.result !== "passed" && judged?.result !== "measured") {
    console.log(`${run.name}\n${ended.output.slice(-MAX_OUTPUT)}${ended.errors.slice(-MAX_OUTPUT)}`);
  }
  const took = Math.round((performance.now() - startMs) / 1_000);
  return { name: run.name, seconds: took, ...(judged ?? { result: "no result", figure: "" }) };
};

const targetOf = ({ kind, name }: Run): string => name.slice(kind.length + 1);
const lengthOf = (run: Run): number => {
  const most = SHORT_BENCHES.has(targetOf(run)) ? SHORT_BENCH_SECONDS : SECONDS[run.kind];
  return Math.min(seconds ?? Number.POSITIVE_INFINITY, most);
};
const sumSeconds = chosen.reduce((sum, run) => sum + lengthOf(run), 0);
console.log(
  `seed ${seed}, ${chosen.length} runs, at most ${Math.ceil(sumSeconds / 60)} minutes together without what they prepare`,
);
const rows: Row[] = [];
for (const run of chosen) {
  const row = await runOne(run);
  console.log(`${row.name}: ${row.result}, ${row.seconds} s`);
  rows.push(row);
}
const lines = rows.map(({ name, seconds: took, result, figure }) => `| ${name} | ${took} s | ${result} | ${figure} |`);
console.log(["", "| name | length | result | main figure |", "|---|---|---|---|", ...lines].join("\n"));
process.exitCode = rows.every(({ result }) => result !== "no result") ? 0 : 1;
