import type { ReadSet } from "../core/readSet.ts";
import type { PlainCall, StateKeys, StateValues } from "../core/stateReader.ts";
import type { EngineKind, ModuleKind } from "../evm/engine.ts";

/** The engine and the module of a chain. A thread loads them when it starts, or with the first run. */
export interface EvmTaskData {
  readonly engine: EngineKind;
  readonly module: ModuleKind;
}

/** The input of a pool's job: one run of EVM code. */
export interface EvmRun extends EvmTaskData {
  /** The thread caches state by chain. */
  readonly chain: string;
  /** Of the function that runs. */
  readonly name: string;
  readonly stateId: string;
  /** Addresses, or prefixes of addresses, whose code is native in that state's block. A run that reads one is forwarded. */
  readonly nativeContracts: readonly string[];
  /** No other run sees values of this state: the thread caches only its codes. Default: no. */
  readonly isPrivate?: boolean;
  /** Values of a private state that the run probably reads. */
  readonly expected: StateValues | undefined;
  /** Return what the run read of the state, too. That costs time. Default: no. */
  readonly tracesReads?: boolean;
  /** The thread aborts the run after this time. The wait for the thread does not count. */
  readonly timeLimitMs: number;
  /** Plain data for the run of that name. */
  readonly input: unknown;
}

/** What a run returned. */
export interface RunOutcome {
  readonly output: unknown;
  /** Rounds of state fetching. */
  readonly rounds: number;
  /** Present only with `tracesReads`. */
  readonly reads?: ReadSet | undefined;
}

/** The output of a pool's job. It throws RpcError for the client, or MustForwardError if a node must answer. */
export type EvmRunOutput =
  | (RunOutcome & { readonly kind: "done" })
  /** The deadline has passed, or the run was interrupted. */
  | { readonly kind: "late" };

/** What a run asks for. */
export interface StateRequest {
  readonly keys: StateKeys;
  /** Calls that will run on the same state. */
  readonly calls: readonly PlainCall[] | undefined;
}
