import type { BlockId } from "../../core/heads.ts";
import type { BlockValues } from "../blockValues.ts";
import type { BulkReader } from "../bulkReader.ts";
import type { StateDifference } from "../stateDifference.ts";
import type { StateKey } from "../stateKey.ts";
import type { AnswerReads } from "./answerReads.ts";

export interface ReadSetCheckOptions {
  readonly values: Pick<BlockValues, "get">;
  readonly reader: Pick<BulkReader, "read" | "readSingly">;
  onSpent(units: number): void;
}

/** Values of one read set that are read again. */
const MAX_KEYS = 1_000;

const emptinessKeys = ({ emptiness }: AnswerReads): readonly StateKey[] =>
  emptiness.flatMap((address) =>
    (["balance", "nonce", "code"] as const).map((field) => ({ field, address, slot: undefined })),
  );

/** Reads the values of a read set from a node, and returns the first known value that is wrong. Never rejects. */
export const findWrongValue = async (
  { values, reader, onSpent }: ReadSetCheckOptions,
  reads: AnswerReads,
  block: BlockId,
): Promise<StateDifference | undefined> => {
  const known = new Map<StateKey, string>();
  for (const key of [...reads.keys, ...emptinessKeys(reads)].slice(0, MAX_KEYS)) {
    const value = values.get(key, block);
    if (value !== undefined) {
      known.set(key, value);
    }
  }
  const read = await reader.read([...known.keys()], block, onSpent);
  const suspect = [...read].find(([key, value]) => value !== known.get(key))?.[0];
  if (suspect === undefined) {
    return undefined;
  }
  // The node may read many values wrongly, but one value correctly.
  const actual = (await reader.readSingly([suspect], block, onSpent)).get(suspect);
  const value = known.get(suspect);
  return actual === undefined || value === undefined || actual === value
    ? undefined
    : { key: suspect, block, known: value, actual };
};
