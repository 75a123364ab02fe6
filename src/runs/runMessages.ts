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
  readonly name: string;
  readonly stateId: string;
  /** Addresses, or prefixes of addresses, whose code is native in that state's block. */
  readonly nativeContracts: readonly string[];
  /** The thread caches no value of this state, only its codes. */
  readonly isPrivate: boolean;
  /** Values of a private state that the run probably reads. */
  readonly expected: StateValues | undefined;
  /** Return what the run read of the state, too. */
  readonly tracesReads: boolean;
  /** The thread aborts the run after this time. The wait for the thread does not count. */
  readonly timeLimitMs: number;
  /** Plain data for the run of that name. */
  readonly input: unknown;
}

/** The output of a pool's job. If a node must answer, the job throws MustForwardError. */
export type EvmRunOutput =
  | { readonly kind: "done"; readonly output: unknown; readonly rounds: number; readonly reads?: ReadSet | undefined }
  /** The deadline has passed, or the run was interrupted. */
  | { readonly kind: "late" }
  /** An error for the client. */
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: unknown };

/** What a run asks for. */
export interface StateRequest {
  readonly keys: StateKeys;
  /** Calls that will run on the same state. */
  readonly calls: readonly PlainCall[] | undefined;
}
