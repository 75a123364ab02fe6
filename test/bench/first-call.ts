import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { encodeFunctionData } from "viem";
import { formatData, ZERO_ADDRESS } from "../../src/ethereum/hex.ts";
import { compile } from "../support/builders/compile.ts";
import { deployOurs, find } from "./support/evmSetup.ts";
import type { FirstCallData } from "./support/firstCallWorker.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const CLAIM = "The first balanceOf in a fresh worker, against the stock library in a fresh worker";
const WORKER = new URL("support/firstCallWorker.ts", import.meta.url);

/** Measures fresh workers in turn. Each figure is that of the best worker, in microseconds. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const token = find(compile(join(import.meta.dirname, "Loops.sol"), "prague"), "Token");
  const { state, at } = await deployOurs(token.bytecode);
  const code = formatData(state.codeOf(at));
  const data = encodeFunctionData({ abi: token.abi, functionName: "balanceOf", args: [ZERO_ADDRESS] });
  const [ours, stock]: [number[][], number[][]] = [[], []];
  for (let worker = 0; worker < (short ? 2 : 5); worker++) {
    ours.push(await timesOf({ isStock: false, code, data }));
    stock.push(await timesOf({ isStock: true, code, data }));
  }
  const best = (workers: readonly number[][], call: number): number =>
    round(Math.min(...workers.map((times) => times[call - 1] ?? Number.POSITIVE_INFINITY)), 0);
  return {
    claim: CLAIM,
    ratio: round(best(stock, 1) / best(ours, 1)),
    ours: best(ours, 1),
    yardstick: best(stock, 1),
    unit: "us",
    second: best(ours, 2),
    hundredth: best(ours, 100),
    hundredthStock: best(stock, 100),
    thousandth: best(ours, 1_000),
    thousandthStock: best(stock, 1_000),
  };
};

const timesOf = async (workerData: FirstCallData): Promise<number[]> => {
  const worker = new Worker(WORKER, { workerData });
  const [times] = await once(worker, "message");
  await worker.terminate();
  return times as number[];
};
