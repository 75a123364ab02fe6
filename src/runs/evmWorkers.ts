import type { StateSource } from "../core/stateReader.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";
import { type PoolLane, WorkerPoolError } from "../threads/poolLane.ts";
import type { EvmLaneOptions, EvmThreads } from "./evmThreads.ts";
import type { EvmRun, EvmRunOutput, RunOutcome, StateRequest } from "./runMessages.ts";

const MAX_WAITING = 64;
/** A run waits for a thread as long as this number of runs may take. The next thread is that of a client with fewer turns. */
const MAX_WAIT_RUNS = 2;
/** A thread aborts a run this long before the deadline. */
const ABORT_AHEAD_MS = 20;

/** All chains share the threads, so that many chains on a machine with many cores do not fill its memory. */
const MAX_DEFAULT_WORKERS = 4;

/** The default of `simulate.workers`. */
export const defaultWorkers = (cores: number): number => Math.min(MAX_DEFAULT_WORKERS, Math.max(1, cores - 1));

export interface EvmWorkersOptions extends Pick<EvmLaneOptions, "engine" | "module" | "size" | "isReserved"> {
  /** The chain's name. Threads cache values of the state by chain. */
  readonly chain: string;
  /** Default: MAX_WAITING. */
  readonly maxWaiting?: number;
  /** The threads of all chains. */
  readonly threads: EvmThreads;
  /** Called when a run reached its time limit. */
  readonly onDeadline?: (() => void) | undefined;
}

export interface RunRequest extends Pick<EvmRun, "name" | "input" | "nativeContracts" | "isPrivate" | "tracesReads"> {
  readonly source: StateSource;
  readonly timeoutMs: number;
  /** See `PoolJob`. */
  readonly begin?: (() => () => void) | undefined;
  /** Clients take turns. Default: no client. */
  readonly owner?: QueueOwner | undefined;
  readonly signal: AbortSignal;
}

/** Executes EVM code of one chain in threads. They have no network: they request missing state from the run's StateSource. */
export class EvmWorkers {
  readonly #options: EvmWorkersOptions;
  readonly #lane: PoolLane;

  constructor(options: EvmWorkersOptions) {
    const { engine, module, maxWaiting = MAX_WAITING, size, isReserved, threads } = options;
    this.#options = options;
    this.#lane = threads.lane({ engine, module, size, maxWaiting, isReserved });
  }

  /**
   * Rejects with MustForwardError, the error of `source`, the signal's reason, or RpcError.
   * An RpcError is 503 if too many runs wait, the deadline, or the run's own error.
   */
  async run(request: RunRequest): Promise<RunOutcome> {
    try {
      return outcomeOf(await this.#run(request));
    } catch (error) {
      if (!(error instanceof WorkerPoolError)) {
        throw error;
      }
      if (error.reason === "deadline") {
        this.#options.onDeadline?.();
      }
      throw rpcErrorOf(error, request.timeoutMs);
    }
  }

  async #run(request: RunRequest): Promise<EvmRunOutput> {
    const { source, begin, timeoutMs, owner, signal, ...named } = request;
    const { chain, engine, module } = this.#options;
    const input: EvmRun = {
      ...named,
      chain,
      engine,
      module,
      stateId: source.id,
      expected: named.isPrivate ? source.expected : undefined,
      timeLimitMs: timeoutMs - ABORT_AHEAD_MS,
    };
    const output = await this.#lane.run({
      input,
      // A thread that ran on this state has cached a part of it.
      affinity: source.id === "" || named.isPrivate ? undefined : `${chain} ${source.id}`,
      onRequest: (request) => {
        const { keys, calls } = request as StateRequest;
        return source.read(keys, signal, calls);
      },
      begin,
      timeoutMs,
      maxWaitMs: MAX_WAIT_RUNS * timeoutMs,
      owner,
      signal,
    });
    return output as EvmRunOutput;
  }

  /** Number of runs that execute. */
  get busy(): number {
    return this.#lane.running;
  }

  async close(): Promise<void> {
    await this.#options.threads.closeLane(this.#lane);
  }
}

const outcomeOf = (output: EvmRunOutput): RunOutcome => {
  if (output.kind === "late") {
    throw new WorkerPoolError("deadline");
  }
  return output;
};

const rpcErrorOf = ({ reason, cause }: WorkerPoolError, timeoutMs: number): RpcError => {
  switch (reason) {
    case "queueFull":
      return unavailable("too many simulations are waiting");
    case "queueTimeout":
      return unavailable("too many simulations are running");
    case "closed":
      return unavailable("shutting down");
    case "deadline":
      return new RpcError(CODES.INTERNAL, `execution aborted (timeout = ${timeoutMs / 1000}s)`);
    case "failed":
      return new RpcError(CODES.INTERNAL, "execution failed", { cause });
  }
};
