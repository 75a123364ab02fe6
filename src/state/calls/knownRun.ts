import type { BlockId } from "../../core/heads.ts";
import { type Address, isAddress, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import type { StateKey } from "../stateKey.ts";
import type { CallReads } from "./callResult.ts";
import { type CallMethod, type CallOutcome, paramsOfKey, type RunCall } from "./callRun.ts";
import { type ExpectedReads, KnownSource, type KnownValues, MissingValuesError } from "./knownSource.ts";

const encoder = new TextEncoder();

export interface KnownRunOptions extends KnownValues {
  readonly run: RunCall;
}

/** A call to execute on the known state after a block. */
export interface KnownCall {
  /** The canonical text of method and parameters without the block. */
  readonly key: string;
  readonly method: CallMethod;
  readonly block: BlockId;
  /** The reads of an earlier execution. */
  readonly expected: CallReads | undefined;
  /** The gas of a call that names none, and the largest gas of a call. */
  readonly gasCap: bigint;
}

/** The outcome, or the values that are not known, or nothing if the call failed or cannot be executed here. */
export type KnownRun =
  | { readonly kind: "done"; readonly outcome: CallOutcome }
  | { readonly kind: "missing"; readonly keys: readonly StateKey[] }
  | { readonly kind: "failed" };

/** The engine reads the sender's account, also if the code of the call does not. */
const senderOf = (params: readonly unknown[]): Address => {
  const { from } = params[0] as { readonly from?: unknown };
  return isAddress(from) ? from : ZERO_ADDRESS;
};

const expectedReads = ({ addresses, keys }: CallReads, sender: Address): ExpectedReads => ({
  accounts: addresses.has(sender) ? [...addresses] : [...addresses, sender],
  slots: keys.flatMap(({ address, slot }) => (slot === undefined ? [] : [[address, slot] as const])),
});

/** Executes a call once, on known values alone. Never rejects. */
export const runOnKnownState = async (
  { run, ...known }: KnownRunOptions,
  { key, method, block, expected, gasCap }: KnownCall,
): Promise<KnownRun> => {
  const params = paramsOfKey(key);
  const source = new KnownSource(known, block, expected && expectedReads(expected, senderOf(params)));
  try {
    // The bytes of a Buffer would be a part of a larger one, which a message to a thread copies as a whole.
    const paramsText = encoder.encode(JSON.stringify(params));
    const outcome = await run({ method, paramsText, block, source, gasCap });
    const guessed = source.guessedReads(outcome.reads);
    return guessed.length > 0 ? { kind: "missing", keys: guessed } : { kind: "done", outcome };
  } catch (error) {
    return error instanceof MissingValuesError ? { kind: "missing", keys: error.keys } : { kind: "failed" };
  }
};
