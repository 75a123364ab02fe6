import type { BlockId } from "../core/heads.ts";
import type { StateKeys, StateValues } from "../core/stateReader.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { EngineKind } from "../evm/engineKind.ts";
import type { PlainCall } from "../evm/reads/stateCalls.ts";
import type { Execution, FlashblockJob } from "./execution.ts";

/** From the main thread to the executor's thread. */
export type ToExecutor =
  /** If not `isExecutable`, the block's own rules are not known: the thread only decodes the transactions. */
  | { readonly kind: "run"; readonly job: FlashblockJob; readonly rules: Rules; readonly isExecutable: boolean }
  /** Runs a job after one that the last change of base discarded: see Executor.executeRest. */
  | { readonly kind: "runRest"; readonly job: FlashblockJob; readonly rules: Rules; readonly isExecutable: boolean }
  | { readonly kind: "rebase"; readonly base: BlockId; readonly through: number | undefined }
  | { readonly kind: "values"; readonly id: number; readonly values: StateValues }
  | { readonly kind: "noValues"; readonly id: number; readonly message: string };

/** From the executor's thread to the main thread. */
export type FromExecutor =
  | { readonly kind: "done"; readonly id: number; readonly execution: Execution }
  /** The job was not run, because the base that it starts from was replaced. */
  | { readonly kind: "cancelled"; readonly id: number }
  | { readonly kind: "failed"; readonly id: number; readonly message: string }
  /** Requests missing state at a sealed block. `id` is the request's. */
  | {
      readonly kind: "readState";
      readonly id: number;
      readonly base: BlockId;
      readonly keys: StateKeys;
      /** Calls that will run soon. */
      readonly hint: readonly PlainCall[] | undefined;
    }
  /** The state of a job could not be read. The read is retried. */
  | { readonly kind: "retry"; readonly number: bigint; readonly index: number; readonly message: string };

/** Sent to the thread when it starts. */
export interface ExecutorData {
  /** Addresses, or prefixes of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  readonly engine: EngineKind;
}
