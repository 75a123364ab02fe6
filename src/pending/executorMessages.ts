import type { BlockId } from "../core/heads.ts";
import type { StateKeys, StateValues } from "../core/stateReader.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { EngineKind } from "../evm/engineKind.ts";
import type { PlainCall } from "../state/fetch/prefetch.ts";
import type { Execution, FlashblockJob } from "./execution.ts";

export interface ExecutorRun {
  readonly job: FlashblockJob;
  readonly rules: Rules;
  /** False: the block's own rules are not known, and the thread only decodes the transactions. */
  readonly isExecutable: boolean;
}

/** What the executor's thread offers. A job is "cancelled" if the base that it starts from was replaced. */
export type ExecutorFunctions = {
  execute(run: ExecutorRun): Promise<Execution | "cancelled">;
  /** Runs a job after one that the last change of base discarded: see Executor.executeRest. */
  executeRest(run: ExecutorRun): Promise<Execution | "cancelled">;
  rebase(change: { readonly base: BlockId; readonly through: number | undefined }): void;
};

/** What the main thread offers to the executor's thread. */
export type ExecutorHost = {
  /** Reads state at a sealed block. `hint`: calls that will run soon. */
  readState(request: {
    readonly base: BlockId;
    readonly keys: StateKeys;
    readonly hint: readonly PlainCall[] | undefined;
  }): Promise<StateValues>;
  /** The state of a job could not be read. The read is retried. */
  retried(job: { readonly number: bigint; readonly index: number; readonly message: string }): void;
};

/** Sent to the thread when it starts. */
export interface ExecutorData {
  /** Addresses, or prefixes of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  readonly engine: EngineKind;
}
