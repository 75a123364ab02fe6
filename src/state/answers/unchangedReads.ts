import type { BlockId } from "../../core/heads.ts";
import type { Address } from "../../ethereum/hex.ts";
import type { BlockValues } from "../blockValues.ts";
import type { StateField, StateKey } from "../stateKey.ts";
import { ZERO_VALUE } from "../writtenValues.ts";
import type { AnswerReads } from "./answerReads.ts";

const FIELDS = ["balance", "nonce", "code"] as const satisfies readonly StateField[];

const keyOf = (address: Address, field: (typeof FIELDS)[number]): StateKey => ({ field, address, slot: undefined });

/** Whether balance, nonce and code of an account are all nothing. Undefined: that is not known. */
const isEmptyAt = (values: Pick<BlockValues, "get">, address: Address, block: BlockId): boolean | undefined => {
  const known = FIELDS.map((field) => values.get(keyOf(address, field), block));
  if (known.some((value) => value !== undefined && value !== ZERO_VALUE)) {
    return false;
  }
  return known.includes(undefined) ? undefined : true;
};

/** Whether no block above `since`, up to `at`, wrote a key of these reads. Both blocks must be readable. */
export const areUnchanged = (
  { keys, emptiness }: Pick<AnswerReads, "keys" | "emptiness">,
  values: Pick<BlockValues, "get" | "isWrittenSince">,
  since: BlockId,
  at: BlockId,
): boolean => {
  const isWritten = (key: StateKey): boolean => values.isWrittenSince(key, since, at);
  const hasSameEmptiness = (address: Address): boolean => {
    if (!FIELDS.some((field) => isWritten(keyOf(address, field)))) {
      return true;
    }
    const before = isEmptyAt(values, address, since);
    return before !== undefined && before === isEmptyAt(values, address, at);
  };
  return !keys.some(isWritten) && emptiness.every(hasSameEmptiness);
};
