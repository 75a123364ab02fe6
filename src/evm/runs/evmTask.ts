import { LRUCache } from "lru-cache";
import type { StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import type { Hash } from "../../ethereum/hex.ts";
import { type Rules, UnknownRules } from "../../ethereum/rules.ts";
import { RpcError } from "../../jsonrpc/rpcError.ts";
import { type RunJob, serveJobs } from "../../workers/serveJobs.ts";
import type { WorkerTask } from "../../workers/startTask.ts";
import { compareEngines } from "../comparison/compareEngines.ts";
import { withoutCodes } from "../comparison/forwardedCode.ts";
import { createEngines, type Engines } from "../createEngines.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { Engine } from "../engine.ts";
import { NotExecutableError } from "../notExecutableError.ts";
import { ReadRecorder } from "../readRecorder.ts";
import { createKnownState, type KnownState } from "../reads/knownState.ts";
import { runUntilStateComplete } from "../reads/runUntilStateComplete.ts";
import type { EvmRun, EvmRunOutput, EvmTaskData } from "./runMessages.ts";

/** A thread caches the state of the newest blocks, so that a repeated call fetches nothing. */
const MAX_STATES = 4;
const MAX_VALUES = 200_000;
const MAX_CODE_BYTES = 64 * 1024 * 1024;

export interface WorkerContext {
  engine(rules: Rules): Engine;
  /** Repeats the run until the state has all values that it reads. `reads` is empty each time, and absent unless requested. */
  withState<T>(run: (state: StateReader, reads?: ReadRecorder) => Promise<T>): Promise<T>;
}

/** The functions that a thread can run, by name. Input and output are plain data. */
export type EvmRuns = Readonly<Record<string, (input: never, context: WorkerContext) => Promise<unknown>>>;

/** Caches the state that runs of this thread have read. */
class StateCaches {
  readonly #codes = new LRUCache<Hash, Uint8Array>({
    maxSize: MAX_CODE_BYTES,
    sizeCalculation: (code) => code.length + 1,
  });
  readonly #states = new LRUCache<string, KnownState>({ max: MAX_STATES });

  of({ stateId, nativeContracts }: Pick<EvmRun, "stateId" | "nativeContracts">): KnownState {
    const cached = this.#states.get(stateId);
    if (cached !== undefined && cached.size < MAX_VALUES) {
      return cached;
    }
    const state = createKnownState({
      codes: this.#codes,
      isNative: (address) => nativeContracts.some((native) => address.startsWith(native)),
    });
    this.#states.set(stateId, state);
    return state;
  }
}

/** Makes the task of a thread that executes EVM code for EvmWorkers. */
export const evmTask =
  (runs: EvmRuns, load = createEngines): WorkerTask =>
  async (port, data) => {
    const { engine, module } = data as EvmTaskData;
    const limit: RunLimit = { deadlineMs: Number.POSITIVE_INFINITY, isInterrupted: () => false };
    const isLate = (): boolean => limit.isInterrupted() || Date.now() >= limit.deadlineMs;
    const engines = await load(engine, { module, isLate });
    const thread = new EvmThread({ runs, engines, limit, loadReference: () => load("reference") });
    serveJobs(port, (job, request, isInterrupted) => {
      limit.isInterrupted = isInterrupted;
      return thread.run(job as EvmRun, request);
    });
  };

/** The limits that end the current run early. */
interface RunLimit {
  /** In milliseconds since the epoch. */
  deadlineMs: number;
  isInterrupted: () => boolean;
}

interface EvmThreadOptions {
  readonly runs: EvmRuns;
  readonly engines: Engines;
  readonly limit: RunLimit;
  readonly loadReference: () => Promise<Engines>;
}

class EvmThread {
  readonly #options: EvmThreadOptions;
  readonly #caches = new StateCaches();
  #reference: Promise<Engines> | undefined;

  constructor(options: EvmThreadOptions) {
    this.#options = options;
  }

  async run(job: EvmRun, request: Parameters<RunJob>[1]): Promise<EvmRunOutput> {
    const { name, input, compares, forwardedCodes, tracesReads, timeLimitMs } = job;
    const run = this.#options.runs[name];
    if (run === undefined) {
      throw new Error(`no run is named ${name}`);
    }
    this.#options.limit.deadlineMs = Date.now() + timeLimitMs;
    const fetch = async (keys: StateKeys) => (await request(keys)) as StateValues;
    let rounds = 0;
    const total = tracesReads ? new ReadRecorder() : undefined;
    const context: WorkerContext = {
      engine: withoutCodes(this.#options.engines, forwardedCodes),
      withState: async (withReader) => {
        let reads: ReadRecorder | undefined;
        const completed = await runUntilStateComplete(this.#caches.of(job), fetch, (reader) => {
          reads = total && new ReadRecorder();
          return withReader(reader, reads);
        });
        rounds += completed.rounds;
        if (reads !== undefined) {
          total?.add(reads.readSet());
        }
        return completed.result;
      },
    };
    if (compares) {
      return this.#compare(job, context.withState, (host) => run(input as never, host));
    }
    try {
      const output = await run(input as never, context);
      return { kind: "done", output, rounds, reads: total?.readSet() };
    } catch (error) {
      return formatError(error);
    }
  }

  async #compare(
    { name, stateId, input }: EvmRun,
    withState: WorkerContext["withState"],
    run: (host: WorkerContext) => Promise<unknown>,
  ): Promise<EvmRunOutput> {
    const { engines: ours, loadReference } = this.#options;
    this.#reference ??= loadReference();
    const options = { run, withState, ours, reference: await this.#reference };
    return { kind: "compared", comparison: await compareEngines({ name, stateId, input }, options) };
  }
}

/** Throws errors that are faults of this program. */
const formatError = (error: unknown): EvmRunOutput => {
  if (error instanceof NotExecutableError || error instanceof UnknownRules) {
    return { kind: "mustForward", message: error.message };
  }
  if (error instanceof DeadlineError) {
    return { kind: "late" };
  }
  if (error instanceof RpcError) {
    const { code, message, data } = error;
    return { kind: "error", code, message, data };
  }
  throw error;
};
