import type { BlockId } from "../../core/heads.ts";
import type { ReadSet } from "../../core/readSet.ts";
import type { StateSource } from "../../core/stateReader.ts";
import type { Data } from "../../ethereum/hex.ts";

/** The methods whose answers hold until a value that they read is written. */
export const CALL_METHODS = ["eth_call", "eth_estimateGas"] as const;
export type CallMethod = (typeof CALL_METHODS)[number];

/** A call on the state after a block. */
export interface BlockCall {
  /** The canonical text of method and parameters without the block. */
  readonly key: string;
  readonly method: CallMethod;
  readonly block: BlockId;
}

/** A call that executes here. The view has the header of its block. */
export interface CallRun extends Omit<BlockCall, "key"> {
  /** JSON text of the parameters. The block among them is ignored. */
  readonly paramsText: Uint8Array;
  readonly source: StateSource;
  /** The gas of a call that names none, and the largest gas of a call. */
  readonly gasCap: bigint;
}

export interface CallOutcome {
  /** The bytes of the call, or the estimate as a quantity. */
  readonly result: Data;
  /** False: with half of the node's gas, the call returns other bytes. */
  readonly holdsWithLessGas: boolean;
  readonly reads: ReadSet;
}

/** Executes a call. Rejects with the source's error, or if it fails or cannot be executed here. */
export type RunCall = (run: CallRun) => Promise<CallOutcome>;

/** Returns the fields of a call, from the canonical text of method and parameters. */
export const fieldsOfCall = (key: string): Readonly<Record<string, unknown>> => Object(paramsOfKey(key)[0]);

/** Returns the parameters of a call without the block, from the canonical text of method and parameters. */
export const paramsOfKey = (key: string): readonly unknown[] => JSON.parse(paramsTextOfKey(key));

/** Returns the JSON text of the parameters without the block. */
export const paramsTextOfKey = (key: string): string => key.slice(key.indexOf(",") + 1, -1);
