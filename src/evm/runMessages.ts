import type { StateKeys, StateValues } from "../core/stateReader.ts";

/** From the main thread to a worker. */
export type ToWorker =
  | {
      readonly kind: "run";
      readonly id: number;
      readonly name: string;
      readonly stateId: string;
      /** Addresses, or beginnings of addresses, whose code is native in that state's block. */
      readonly nativeContracts: readonly string[];
      readonly input: unknown;
    }
  | { readonly kind: "values"; readonly id: number; readonly values: StateValues }
  | { readonly kind: "noValues"; readonly id: number; readonly message: string };

/** An error that a caller hears as it is. */
export interface RunFault {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** From a worker to the main thread. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "need"; readonly id: number; readonly keys: StateKeys }
  | { readonly kind: "done"; readonly id: number; readonly output: unknown; readonly rounds: number }
  | { readonly kind: "fault"; readonly id: number; readonly fault: RunFault }
  /** It cannot be run here: a node must answer. */
  | { readonly kind: "native"; readonly id: number; readonly message: string }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
