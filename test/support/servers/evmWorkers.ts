import { workerEntry } from "../../../src/app/workerEntry.ts";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import { ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { EvmThreads, type EvmThreadsOptions } from "../../../src/runs/evmThreads.ts";
import { EvmWorkers, type EvmWorkersOptions } from "../../../src/runs/evmWorkers.ts";
import type { CallInput } from "../../../src/simulation/callExecution.ts";
import { PARENT } from "../builders/parentBlock.ts";
import { plainSource } from "../fakes/plainSource.ts";

/** The options of a chain whose engine and module do not matter. */
export const PLAIN_CHAIN = { chain: "chain", engine: "fast", module: "ethereum" } as const;

type OwnWorkersOptions = Partial<Omit<EvmWorkersOptions & EvmThreadsOptions, "threads" | "size" | "isReserved">>;

/** Creates workers with one thread, which ends with them. */
export const createWorkers = ({ onThreads, onFailure, ...options }: OwnWorkersOptions = {}): EvmWorkers => {
  const threads = new EvmThreads({ entry: workerEntry("evm"), onThreads, onFailure });
  return new EvmWorkers({ ...PLAIN_CHAIN, ...options, threads, size: 1, isReserved: true });
};

/** Creates workers whose thread has loaded: deadlines of runs are shorter than that may take on a busy machine. */
export const readyWorkers = async (options: OwnWorkersOptions = {}): Promise<EvmWorkers> => {
  const workers = createWorkers(options);
  const input: CallInput = {
    paramsText: new TextEncoder().encode(JSON.stringify([{ to: ZERO_ADDRESS }, "latest"])),
    block: { ...PARENT, hash: ZERO_HASH },
    forks: fixedForks(1n, "prague"),
    gasCap: 1_000_000n,
  };
  const source = plainSource("ready", new Map());
  const { signal } = new AbortController();
  await workers.run({ name: "call", input, source, nativeContracts: [], timeoutMs: 60_000, signal });
  return workers;
};
