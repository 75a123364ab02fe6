import { LRUCache } from "lru-cache";
import { MustForwardError } from "../core/mustForwardError.ts";
import type { ReadSet } from "../core/readSet.ts";
import type { PlainCall, StateKeys, StateValues } from "../core/stateReader.ts";
import type { Hash } from "../ethereum/hex.ts";
import { UnknownRules } from "../ethereum/rules.ts";
import { createEngines, type Engines } from "../evm/createEngines.ts";
import type { EngineKind, ModuleKind } from "../evm/engine.ts";
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
    let deadlineMs = Number.POSITIVE_INFINITY;
    let isInterrupted = (): boolean => false;
    const isLate = (): boolean => isInterrupted() || Date.now() >= deadlineMs;
    const caches = new StateCaches();
    const enginesOf = loadOnce((kind, module) => load(kind, { module, isLate }));
    await enginesOf(data as EvmTaskData);
    new Channel<Record<string, never>, JobFunctions>(port, {
      run: async (job, call) => {
        const run = job as EvmRun;
        isInterrupted = () => call.isAborted();
        const engine = await enginesOf(run);
        deadlineMs = Date.now() + run.timeLimitMs;
        return execute(runs, run, new RunHost({ ...run, engine, known: caches.of(run), call }));
      },
    });
  };

/** Returns the engines of one thread, by kind. Chains with different kinds share the thread. */
const loadOnce = (load: (kind: EngineKind, module: ModuleKind) => Promise<Engines>) => {
  const loaded = new Map<EngineKind, Promise<Engines>>();
  return ({ engine, module }: EvmTaskData): Promise<Engines> => {
    const engines = loaded.get(engine) ?? load(engine, module);
    loaded.set(engine, engines);
    return engines;
  };
};

const execute = async (runs: EvmRuns, { name, input }: EvmRun, host: RunHost): Promise<EvmRunOutput> => {
  const run = runs[name];
  if (run === undefined) {
    throw new Error(`no run is named ${name}`);
  }
  try {
    const output = await run(input as never, host);
    return { kind: "done", output, rounds: host.rounds, reads: host.readSet };
  } catch (error) {
    if (error instanceof DeadlineError) {
      return { kind: "late" };
    }
    throw errorOfRun(error);
  }
};

/** Returns the error that the channel carries to the caller. */
const errorOfRun = (error: unknown): unknown => {
  if (error instanceof TooManyReadsError) {
    return new RpcError(CODES.INTERNAL, error.message);
  }
  return error instanceof NotExecutableError || error instanceof UnknownRules
    ? new MustForwardError(error.message)
    : error;
};

interface RunHostOptions extends Pick<EvmRun, "tracesReads"> {
  readonly engine: Engines;
  readonly known: CachedState;
  readonly call: RemoteCall;
}

/** The part of the thread that one run uses. It counts the rounds of state fetching, and collects what the run reads. */
class RunHost implements FetchingContext {
  readonly engine: Engines;
  readonly known: CachedState;
  readonly #call: RemoteCall;
  readonly #reads: ReadRecorder | undefined;
  #rounds = 0;

  constructor({ engine, known, call, tracesReads }: RunHostOptions) {
    this.engine = engine;
    this.known = known;
    this.#call = call;
    this.#reads = tracesReads ? new ReadRecorder() : undefined;
  }

  get rounds(): number {
    return this.#rounds;
  }

  /** Undefined unless requested. */
  get readSet(): ReadSet | undefined {
    return this.#reads?.readSet();
  }

  async fetch(keys: StateKeys, calls?: readonly PlainCall[]): Promise<StateValues> {
    return (await this.#call.ask({ keys, calls } satisfies StateRequest)) as StateValues;
  }

  async complete<T>(run: SteppedRun<T>): Promise<T> {
    const reads = this.#reads && new ReadRecorder();
    const rounds = new FetchRounds(run, { known: this.known, fetch: (keys) => this.fetch(keys), reads });
    const { result } = await complete(run, rounds);
    this.#rounds += rounds.count;
    if (reads !== undefined) {
      this.#reads?.add(reads.readSet());
    }
    return result;
  }
}
