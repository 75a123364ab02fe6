import type { Caller, CallScope, StateReadContext } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { MustForwardError } from "../core/mustForwardError.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import { traced } from "../core/trace.ts";
import { type Data, formatQuantity, type Quantity } from "../ethereum/hex.ts";
import { missingFields, unknownFields } from "../ethereum/nodeRules.ts";
import { areRulesKnown, type ChainForks, newestRulesAt } from "../ethereum/rules.ts";
import { CODES, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import { INTERNAL_OWNER, ownerOf } from "../limits/fairQueue.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { EvmWorkers } from "../runs/evmWorkers.ts";
import type { CallOutcome } from "../state/calls/callRun.ts";
import type { CallInput } from "./callExecution.ts";
import type { ErrorShape } from "./formatBlock.ts";
import type { SimulationInput } from "./runSimulation.ts";
import type { BaseBlock, Profile } from "./simulatedHeader.ts";
import type { AccessListResult, RepeatedCallResult } from "./simulationRuns.ts";

export interface SimulatorOptions {
  readonly workers: Pick<EvmWorkers, "run">;
  /** Returns the rules as far as they are known now. */
  forks(): ChainForks;
  /** Returns addresses, or prefixes of addresses, whose code is native in a block of that time. */
  nativesAt(timestamp: bigint): readonly string[];
  readonly profile: Profile;
  readonly errorShape: ErrorShape;
  readonly maxBlocks: number;
  readonly maxCalls: number;
  readonly gasCap: bigint;
  /** Limit of the result of a simulation. */
  readonly maxResponseBytes: number;
  readonly timeoutMs: number;
  /** Holds room for the result of a simulation while it executes. Default: none is held. */
  readonly memory?: MemoryBudget | undefined;
  /** Returns the time between blocks, measured or configured. */
  blockTimeMs(): number;
  /** Called when a run has ended. */
  readonly onRun?: (kind: RunKind, run: RunReport) => void;
}

interface RunReport {
  /** `forwarded`: the run cannot be done here, so a node answers. */
  readonly outcome: "ok" | "error" | "forwarded";
  /** Rounds of state fetching. Undefined unless the outcome is `ok`. */
  readonly rounds: number | undefined;
  /** Includes the waits for a worker and for state. */
  readonly seconds: number;
}

export type RunKind = "simulate" | "call" | "estimateGas" | "createAccessList";

/** The block and the state on which a run is based. */
export interface ExecutionBase {
  /** For a simulation the block before the first one, for a call the block that it runs in. */
  readonly block: BaseBlock;
  readonly source: StateSource;
  /** For simulations on the pending block: the timestamp of the first simulated block. */
  readonly firstTimestamp?: bigint;
}

/** The client of a run. The run ends when the client disconnects, and clients take turns. */
export interface ExecutionScope extends Pick<CallScope, "signal" | "span"> {
  readonly caller: Caller;
}

/** Executes calls and simulations here. All methods reject with RpcError, or with MustForwardError if a node must answer. */
export interface Simulator {
  simulate(paramsText: Uint8Array, base: ExecutionBase, scope: ExecutionScope): Promise<RpcResponse>;
  call(paramsText: Uint8Array, base: ExecutionBase, scope: ExecutionScope): Promise<RpcResponse>;
  estimateGas(paramsText: Uint8Array, base: ExecutionBase, scope: ExecutionScope): Promise<RpcResponse>;
  createAccessList(paramsText: Uint8Array, base: ExecutionBase, scope: ExecutionScope): Promise<RpcResponse>;
  /** Executes a call alone on its source, and returns what it read. */
  trace(request: TraceRequest): Promise<CallOutcome>;
}

interface TraceRequest {
  readonly kind: "repeatedCall" | "estimateGas";
  readonly paramsText: Uint8Array;
  readonly base: ExecutionBase;
  /** The gas of a call that names none. */
  readonly gasCap: bigint;
  readonly signal: AbortSignal;
}

/** Clients wait for the same threads. A call that takes longer is left to the nodes. */
const MAX_TRACE_MS = 1_000;
const GETH_STEP_SECONDS = 12n;
const encoder = new TextEncoder();

export const createSimulator = (options: SimulatorOptions): Simulator => {
  const runCall = async (
    kind: RunKind,
    paramsText: Uint8Array,
    base: ExecutionBase,
    scope: ExecutionScope,
  ): Promise<RpcResponse> => {
    const input: CallInput = { paramsText, block: base.block, forks: options.forks(), gasCap: options.gasCap };
    const output = await runInWorker(options, { kind, input, base, scope });
    return localResponse(encoder.encode(JSON.stringify(formatOutput(output as Output))), base);
  };
  return {
    simulate: async (paramsText, base, scope) => {
      const input = simulationInput(options, paramsText, base);
      const output = await runInWorker(options, { kind: "simulate", input, base, scope });
      return localResponse(output as Uint8Array, base);
    },
    call: (paramsText, base, scope) => runCall("call", paramsText, base, scope),
    estimateGas: (paramsText, base, scope) => runCall("estimateGas", paramsText, base, scope),
    createAccessList: (paramsText, base, scope) => runCall("createAccessList", paramsText, base, scope),
    trace: (request) => runTraced(options, request),
  };
};

/** These runs are not those of clients, so that their metrics do not count them. */
const runTraced = async (
  { workers, forks, nativesAt, timeoutMs }: SimulatorOptions,
  { kind, paramsText, base: { block, source }, gasCap, signal }: TraceRequest,
): Promise<CallOutcome> => {
  if (!isBlockKnown(block, forks())) {
    throw new MustForwardError(`the rules of block ${block.number} are not known`);
  }
  const input: CallInput = { paramsText, block, forks: forks(), gasCap };
  const nativeContracts = nativesAt(block.timestamp);
  const { output, reads } = await workers.run({
    ...{ name: kind, input, source, nativeContracts, timeoutMs: Math.min(timeoutMs, MAX_TRACE_MS), signal },
    ...{ isPrivate: true, tracesReads: true, owner: INTERNAL_OWNER },
  });
  if (reads === undefined) {
    throw new Error("the run did not return what it read");
  }
  const traced =
    typeof output === "bigint"
      ? { result: formatQuantity(output), holdsWithLessGas: true }
      : (output as RepeatedCallResult);
  return { ...traced, reads };
};

interface Run {
  readonly kind: RunKind;
  readonly input: unknown;
  readonly base: ExecutionBase;
  readonly scope: ExecutionScope;
}

/** Runs in a worker, and reports the run to `onRun`. */
const runInWorker = async (options: SimulatorOptions, { kind, input, base, scope }: Run): Promise<unknown> => {
  const { workers, timeoutMs, onRun } = options;
  const startMs = performance.now();
  const report = (outcome: RunReport["outcome"], rounds: number | undefined): void =>
    onRun?.(kind, { outcome, rounds, seconds: (performance.now() - startMs) / 1000 });
  try {
    const { source, block } = base;
    if (!isBlockKnown(block, options.forks())) {
      throw new MustForwardError(`the rules of block ${block.number} are not known`);
    }
    const nativeContracts = options.nativesAt(block.timestamp);
    const { signal, span, caller } = scope;
    const owner = ownerOf(caller);
    const begin = kind === "simulate" ? () => reserveResult(options, caller) : undefined;
    const job = { name: kind, input, source, nativeContracts, timeoutMs, owner, signal, begin };
    const { output, rounds } = await traced(span, "simulation", { "forebay.run": kind }, () => workers.run(job));
    report("ok", rounds);
    return output;
  } catch (error) {
    report(error instanceof MustForwardError ? "forwarded" : "error", undefined);
    throw error;
  }
};

/** Of a small budget, one simulation takes a part only. */
const MAX_RESERVED_SHARE = 1 / 8;

/** Reserves room for the result of a simulation. Returns the function that releases it. Throws RpcError (503) without room. */
const reserveResult = ({ memory, maxResponseBytes }: SimulatorOptions, { clientId }: Caller): (() => void) => {
  const use = memory?.open("executions", clientId);
  if (use?.tryAdd(Math.min(maxResponseBytes, (memory?.maxBytes ?? 0) * MAX_RESERVED_SHARE)) === false) {
    throw overBudget();
  }
  return () => use?.end();
};

const isBlockKnown = ({ number, timestamp, laterFields = [] }: BaseBlock, forks: ChainForks): boolean => {
  const rules = newestRulesAt(forks, number, timestamp);
  const differing = [...unknownFields(laterFields, rules), ...missingFields(laterFields, rules)];
  return areRulesKnown(forks, timestamp) && differing.length === 0;
};

const simulationInput = (
  { forks, profile, errorShape, maxBlocks, maxCalls, gasCap, maxResponseBytes, blockTimeMs }: SimulatorOptions,
  paramsText: Uint8Array,
  { block, firstTimestamp }: ExecutionBase,
): SimulationInput => ({
  paramsText,
  parent: block,
  forks: forks(),
  profile,
  errorShape,
  timeStep: profile === "geth" ? GETH_STEP_SECONDS : stepSeconds(blockTimeMs()),
  maxBlocks,
  maxCalls,
  gasCap,
  maxResponseBytes,
  firstTimestamp,
});

const localResponse = (body: Uint8Array, { block }: ExecutionBase): RpcResponse => ({
  body,
  status: { hit: "local" },
  block: { number: block.number, hash: block.hash } satisfies BlockId,
});

type Output = Data | bigint | AccessListResult;

const formatOutput = (output: Output): Data | Quantity | object => {
  if (typeof output === "bigint") {
    return formatQuantity(output);
  }
  return typeof output === "string" ? output : { ...output, gasUsed: formatQuantity(output.gasUsed) };
};

/** Converts to seconds, because the timestamps of headers are whole seconds. */
const stepSeconds = (blockTimeMs: number): bigint => BigInt(Math.max(1, Math.round(blockTimeMs / 1_000)));

interface StateReadLimitOptions {
  /** Maximum of calls to nodes by which one request reads state. */
  readonly maxStateReads: number;
  /** The client's request, with all items of a batch. `charge` counts the calls against the client's rate limits. */
  readonly context: Pick<StateReadContext, "progress" | "caller">;
  /** Called with a request above the limit. */
  onExceeded(): void;
}

/** Creates the function that is called before an execution reads state from nodes. It throws RpcError above the limit. */
export const createStateReadLimit = ({ maxStateReads, context, onExceeded }: StateReadLimitOptions) => {
  const request = context.progress ?? { stateReads: 0 };
  return (calls: number): void => {
    if (request.stateReads + calls > maxStateReads) {
      onExceeded();
      throw new RpcError(
        CODES.SERVER,
        `execution aborted: the request reads more than ${maxStateReads} state values from nodes (simulate.maxStateReads)`,
      );
    }
    request.stateReads += calls;
    context.caller.charge?.(calls, "stateReads");
  };
};
