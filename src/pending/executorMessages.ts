import type { BlockId } from "../core/heads.ts";
import type { StateKeys, StateValues } from "../core/stateReader.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { PlainCall } from "../evm/stateCalls.ts";
import type { Execution, Work } from "./execution.ts";

/** From the main thread to the executor's. */
export type ToExecutor =
  /** Where not `isExecutable`, the block's own rules are not known: the transactions are only decoded. */
  | { readonly kind: "run"; readonly work: Work; readonly rules: Rules; readonly isExecutable: boolean }
  | { readonly kind: "rebase"; readonly base: BlockId; readonly through: number | undefined }
  | { readonly kind: "values"; readonly id: number; readonly values: StateValues }
  | { readonly kind: "noValues"; readonly id: number; readonly message: string };

/** From the executor's thread. */
export type FromExecutor =
  /** Its modules are loaded. */
  | { readonly kind: "ready" }
  | { readonly kind: "done"; readonly id: number; readonly execution: Execution }
  /** Not run: the base it starts from no longer holds. */
  | { readonly kind: "void"; readonly id: number }
  | { readonly kind: "failed"; readonly id: number; readonly message: string }
  /** State at a sealed block that a run lacks; `id` is of this question. */
  | {
      readonly kind: "need";
      readonly id: number;
      readonly base: BlockId;
      readonly keys: StateKeys;
      /** Calls that are about to run. */
      readonly wish: readonly PlainCall[] | undefined;
    }
  /** A work's state could not be read; it is tried again. */
  | { readonly kind: "retry"; readonly number: bigint; readonly index: number; readonly message: string };

export interface ExecutorData {
  /** Addresses, or beginnings of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
}
