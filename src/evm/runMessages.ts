import type { EngineKind } from "./engineKind.ts";

/** Sent to a thread when it starts. */
export interface EvmTaskData {
  readonly engine: EngineKind;
}

/** The input of a pool's job: one run of EVM code. */
export interface EvmRun {
  readonly name: string;
  readonly stateId: string;
  /** Addresses, or prefixes of addresses, whose code is native in that state's block. */
  readonly nativeContracts: readonly string[];
  /** Plain data for the run of that name. */
  readonly input: unknown;
}

/** The output of a pool's job. */
export type EvmRunOutput =
  | { readonly kind: "done"; readonly output: unknown; readonly rounds: number }
  /** An error for the client. */
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: unknown }
  /** The run cannot be done here: a node must answer. */
  | { readonly kind: "mustForward"; readonly message: string };
