import { join } from "node:path";
import { encodeFunctionData } from "viem";
import { formatData, ZERO_ADDRESS } from "../../src/ethereum/hex.ts";
import { compile } from "../support/builders/compile.ts";
import { startChild } from "./support/child.ts";
import { deployOurs, find } from "./support/evmSetup.ts";
import { type BenchOptions, type BenchResult, median, round } from "./support/result.ts";

const CLAIM = "A warm idle worker adds at most 40 MB of resident memory";
const MAX_MEGABYTES = 40;
const COUNTS = [1, 2, 4];

/** Measures processes with 1, 2 and 4 workers. `ours` is the slope. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const token = find(compile(join(import.meta.dirname, "Loops.sol"), "prague"), "Token");
  const { state, at } = await deployOurs(token.bytecode);
  const code = formatData(state.codeOf(at));
  const data = encodeFunctionData({ abi: token.abi, functionName: "balanceOf", args: [ZERO_ADDRESS] });
  const rounds = short ? 1 : 3;
  const megabytes = new Map(COUNTS.map((count) => [count, [] as number[]]));
  for (let roundAt = 0; roundAt < rounds; roundAt++) {
    for (const [count, values] of megabytes) {
      values.push((await residentBytes([String(count), code, data])) / 1e6);
    }
  }
  const [one = 0, two = 0, four = 0] = COUNTS.map((count) => median(megabytes.get(count) ?? []));
  const slope = slopeOf(COUNTS, [one, two, four]);
  return {
    claim: CLAIM,
    ratio: round(MAX_MEGABYTES / slope),
    ours: round(slope, 1),
    yardstick: MAX_MEGABYTES,
    unit: "MB per worker",
    oneWorker: round(one, 1),
    twoWorkers: round(two, 1),
    fourWorkers: round(four, 1),
  };
};

/** The slope of the line with the least squares. */
const slopeOf = (xs: readonly number[], ys: readonly number[]): number => {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(xs), mean(ys)];
  const products = xs.map((x, at) => (x - meanX) * ((ys[at] ?? 0) - meanY));
  return mean(products) / mean(xs.map((x) => (x - meanX) ** 2));
};

const residentBytes = async (args: readonly string[]): Promise<number> => {
  const child = startChild("warmWorkers.ts", args);
  try {
    return Number(await child.message());
  } finally {
    await child.end();
  }
};
