import { LRUCache } from "lru-cache";
import { MustForwardError } from "../core/mustForwardError.ts";
import type { ReadSet } from "../core/readSet.ts";
import type { PlainCall, StateKeys, StateValues } from "../core/stateReader.ts";
import type { Hash } from "../ethereum/hex.ts";
import { type Rules, UnknownRules } from "../ethereum/rules.ts";
import { createEngines, type Engines } from "../evm/createEngines.ts";
import type { Engine, EngineKind, ModuleKind } from "../evm/engine.ts";
import { DeadlineError, NotExecutableError, TooManyReadsError } from "../evm/executionErrors.ts";
import { ReadRecorder } from "../evm/readRecorder.ts";
import { CachedState } from "../evm/reads/cachedState.ts";
import { complete, type FetchingContext, type SteppedRun } from "../evm/reads/complete.ts";
import { FetchRounds } from "../evm/reads/fetchRounds.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { Channel, type RemoteCall } from "../threads/channel.ts";
import type { ThreadTask } from "../threads/threadTask.ts";
import type { JobFunctions } from "../threads/workerSlot.ts";
import type { EvmRun, EvmRunOutput, EvmTaskData, StateRequest } from "./runMessages.ts";

/** A thread caches the state of the newest blocks, so that a repeated call fetches nothing. */
const MAX_STATES = 8;
const MAX_VALUES = 200_000;
const MAX_CODE_BYTES = 64 * 1024 * 1024;

/** The functions that a thread can run, by name. Input and output are plain data. */
export type EvmRuns = Readonly<Record<string, (input: never, context: FetchingContext) => Promise<unknown>>>;

/** Caches the state that runs of this thread have read. */
class StateCaches {
  readonly #codes = new LRUCache<Hash, Uint8Array>({
    maxSize: MAX_CODE_BYTES,
    sizeCalculation: (code) => code.length + 1,
  });
  readonly #states = new LRUCache<string, CachedState>({ max: MAX_STATES });

  of({ chain, stateId, nativeContracts, isPrivate, expected }: EvmRun): CachedState {
    const key = `${chain} ${stateId}`;
    const cached = isPrivate ? undefined : this.#states.get(key);
    if (cached !== undefined && cached.size < MAX_VALUES) {
      return cached;
    }
    const state = new CachedState({
      codes: this.#codes,
      isNative: (address) => nativeContracts.some((native) => address.startsWith(native)),
    });
    if (!isPrivate) {
      this.#states.set(key, state);
    } else if (expected !== undefined) {
      state.add(expected);
    }
    return state;
  }
}

/** Makes the task of a thread that executes EVM code for EvmWorkers. */
export const evmTask =
  (runs: EvmRuns, load = createEngines): ThreadTask =>
  async (port, data) => {
    const { engine, module } = data as EvmTaskData;
    const limit: RunLimit = { deadlineMs: Number.POSITIVE_INFINITY, isInterrupted: () => false };
    const isLate = (): boolean => limit.isInterrupted() || Date.now() >= limit.deadlineMs;
    const engines = new LoadedEngines((kind, kindModule) => load(kind, { module: kindModule, isLate }));
    await engines.of({ engine, module });
    const thread = new EvmThread({ runs, engines, limit });
    new Channel<Record<string, never>, JobFunctions>(port, {
      run: (job, call) => {
        limit.isInterrupted = () => call.isAborted();
        return thread.run(job as EvmRun, call);
      },
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
  readonly engines: LoadedEngines;
  readonly limit: RunLimit;
}

class EvmThread {
  readonly #options: EvmThreadOptions;
  readonly #caches = new StateCaches();

  constructor(options: EvmThreadOptions) {
    this.#options = options;
  }

  async run(job: EvmRun, call: RemoteCall): Promise<EvmRunOutput> {
    const { name, input, tracesReads, timeLimitMs } = job;
    const run = this.#options.runs[name];
    if (run === undefined) {
      throw new Error(`no run is named ${name}`);
    }
    const engines = await this.#options.engines.of(job);
    this.#options.limit.deadlineMs = Date.now() + timeLimitMs;
    const known = this.#caches.of(job);
    const host = new RunHost({
      engines,
      known,
      fetch: async (keys, calls) => (await call.ask({ keys, calls } satisfies StateRequest)) as StateValues,
      tracesReads,
    });
    try {
      const output = await run(input as never, host);
      const { rounds, reads } = host;
      return { kind: "done", output, rounds, reads };
    } catch (error) {
      return outcomeOfError(error);
    }
  }
}

const outcomeOfError = (error: unknown): EvmRunOutput => {
  if (error instanceof DeadlineError) {
    return { kind: "late" };
  }
  if (error instanceof RpcError) {
    const { code, message, data } = error;
    return { kind: "error", code, message, data };
  }
  if (error instanceof TooManyReadsError) {
    return { kind: "error", code: CODES.INTERNAL, message: error.message, data: undefined };
  }
  throw error instanceof NotExecutableError || error instanceof UnknownRules
    ? new MustForwardError(error.message)
    : error;
};

/** The engines of one thread, by kind. Chains with different kinds share the thread. */
class LoadedEngines {
  readonly #load: (kind: EngineKind, module: ModuleKind) => Promise<Engines>;
  readonly #engines = new Map<EngineKind, Promise<Engines>>();

  constructor(load: (kind: EngineKind, module: ModuleKind) => Promise<Engines>) {
    this.#load = load;
  }

  of({ engine, module }: EvmTaskData): Promise<Engines> {
    const engines = this.#engines.get(engine) ?? this.#load(engine, module);
    this.#engines.set(engine, engines);
    return engines;
  }
}

interface RunHostOptions extends Pick<FetchingContext, "known" | "fetch"> {
  readonly engines: Engines;
  readonly tracesReads: boolean;
}

/** The part of the thread that one run uses. It counts the rounds of state fetching, and collects what the run reads. */
class RunHost implements FetchingContext {
  readonly #options: RunHostOptions;
  readonly #reads: ReadRecorder | undefined;
  #rounds = 0;

  constructor(options: RunHostOptions) {
    this.#options = options;
    this.#reads = options.tracesReads ? new ReadRecorder() : undefined;
  }

  get rounds(): number {
    return this.#rounds;
  }

  /** Undefined unless requested. */
  get reads(): ReadSet | undefined {
    return this.#reads?.readSet();
  }

  engine(rules: Rules): Engine {
    return this.#options.engines(rules);
  }

  get known(): CachedState {
    return this.#options.known;
  }

  fetch(keys: StateKeys, calls?: readonly PlainCall[]): Promise<StateValues> {
    return this.#options.fetch(keys, calls);
  }

  async complete<T>(run: SteppedRun<T>): Promise<T> {
    const rounds = new FetchRounds(run, { ...this.#options, reads: this.#reads });
    const { result } = await complete(run, rounds);
    this.#rounds += rounds.count;
    return result;
  }
}
