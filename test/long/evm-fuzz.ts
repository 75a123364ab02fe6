import { createEngines } from "../../src/evm/createEngines.ts";
import { type CaseId, FUZZ_FORKS, FuzzRun } from "../fuzz/evm/fuzzRun.ts";

/**
 * Random transactions, executed by revm and by the library's `runTx`. Result, gas, logs, state and read set must be equal.
 * revm's result must not change after changes of values outside the read set.
 * `SEED=n` repeats a run. `CASE="osaka 123"` repeats one case of it.
 */
const PROGRAMS = 100_000;
const MIN_SHARE = 0.3;
/** With fewer random programs, an opcode may be missing in one fork by chance. */
const COVERING_PROGRAMS = 10_000;
const SEEDS = 2 ** 32;

const readCase = (text: string): CaseId => {
  const [name, seed] = text.split(" ");
  const fork = FUZZ_FORKS.find((known) => known === name);
  if (fork === undefined || seed === undefined) {
    throw new Error('CASE="<fork> <seed>"');
  }
  return { fork, seed: Number(seed) };
};

/** Without `seconds`, the run ends after 100,000 programs. */
export const long = async ({ seconds }: { readonly seconds: number | undefined }) => {
  const seed = process.env.SEED === undefined ? Math.floor(Math.random() * SEEDS) : Number(process.env.SEED);
  console.error(`SEED=${seed}`);
  const run = new FuzzRun(await createEngines("fast"), await createEngines("reference"));
  if (process.env.CASE !== undefined) {
    await run.runCase(readCase(process.env.CASE));
    return { passed: run.differences.length === 0, ...run.report() };
  }
  const endMs = performance.now() + (seconds ?? Number.POSITIVE_INFINITY) * 1_000;
  await run.run(seed, () => (seconds === undefined ? run.programs >= PROGRAMS : performance.now() > endMs));
  const passed =
    run.differences.length === 0 &&
    (run.missing.length === 0 || run.programs < COVERING_PROGRAMS) &&
    run.successShare >= MIN_SHARE &&
    1 - run.successShare >= MIN_SHARE;
  return { passed, seed, ...run.report() };
};
