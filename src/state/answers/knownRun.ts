import type { BlockId } from "../../core/heads.ts";
import type { StateKey } from "../stateKey.ts";
import type { AnswerReads } from "./answerReads.ts";
import type { AnswerMethod, CallOutcome, RunCall } from "./callRun.ts";
import { type ExpectedReads, KnownSource, type KnownValues } from "./knownSource.ts";
import { MissingValuesError } from "./missingValuesError.ts";

export interface KnownRunOptions extends KnownValues {
  readonly run: RunCall;
}

/** A call to execute on the known state after a block. */
export interface KnownCall {
  /** The canonical text of method and parameters without the block. */
  readonly key: string;
  readonly method: AnswerMethod;
  readonly block: BlockId;
  /** The reads of an earlier execution. */
  readonly expected: AnswerReads | undefined;
  /** The gas of a call that names none, and the largest gas of a call. */
  readonly gasCap: bigint;
}

/** The outcome, or the values that are not known, or nothing if the call failed or cannot be executed here. */
export type KnownRun =
  | { readonly kind: "done"; readonly outcome: CallOutcome }
  | { readonly kind: "missing"; readonly keys: readonly StateKey[] }
  | { readonly kind: "failed" };

/** Returns the text of the parameters, which the canonical text contains. */
const paramsTextOf = (key: string): Uint8Array => Buffer.from(JSON.stringify(JSON.parse(key)[1]));

const expectedReads = (reads: AnswerReads | undefined): ExpectedReads | undefined =>
  reads && {
    accounts: [...reads.addresses],
    slots: reads.keys.flatMap(({ address, slot }) => (slot === undefined ? [] : [[address, slot] as const])),
  };

/** Executes a call once, on known values alone. Never rejects. */
export const runOnKnownState = async (
  { run, ...known }: KnownRunOptions,
  { key, method, block, expected, gasCap }: KnownCall,
): Promise<KnownRun> => {
  const source = new KnownSource(known, block, expectedReads(expected));
  try {
    const outcome = await run({ method, paramsText: paramsTextOf(key), block, source, gasCap });
    const guessed = source.guessedReads(outcome.reads);
    return guessed.length > 0 ? { kind: "missing", keys: guessed } : { kind: "done", outcome };
  } catch (error) {
    return error instanceof MissingValuesError ? { kind: "missing", keys: error.keys } : { kind: "failed" };
  }
};
