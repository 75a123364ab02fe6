import type { BlockId } from "../core/heads.ts";
import { EMPTY_OMMERS_HASH } from "../ethereum/blockHeader.ts";
import { parseData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { type BlockTransactions, hasHashesOf } from "./blockRows.ts";
import { bytesOf, fieldsOf, ifWellFormed, isAbsent, isSame, listOf, numberOf } from "./jsonFields.ts";

/** EIP-4895: index, index of the validator, address, amount. */
const encodeWithdrawal = (item: unknown): Uint8Array => {
  const { index, validatorIndex, address, amount } = fieldsOf(item);
  return encodeList([
    ...[encodeNumber(numberOf(index)), encodeNumber(numberOf(validatorIndex))],
    ...[encodeBytes(parseData(bytesOf(address, 20))), encodeNumber(numberOf(amount))],
  ]);
};

const hasNoUncles = ({ uncles, sha3Uncles }: Fields): boolean =>
  isAbsent(uncles) || (listOf(uncles).length === 0 && isSame(sha3Uncles, EMPTY_OMMERS_HASH));

/** On OP-stack chains since Isthmus, `withdrawalsRoot` is the root of a storage: an empty list does not follow from it. */
const hasWithdrawals = ({ withdrawals, withdrawalsRoot }: Fields): boolean =>
  isAbsent(withdrawals) || isSame(withdrawalsRoot, orderedTrieRoot(listOf(withdrawals).map(encodeWithdrawal)));

/** The sender of a full transaction is in no hash. It would have to be recovered from the signature. */
const hasTransactions = (list: unknown, known: BlockTransactions | undefined): boolean =>
  isAbsent(list) || listOf(list).length === 0 || (known !== undefined && hasHashesOf(listOf(list), known));

/**
 * Returns the block if its header, whose hash was computed, binds all of the response but `size` and `totalDifficulty`.
 * `known`: the block's transactions, if they are verified.
 */
export const boundBlock = (block: Fields, known: BlockTransactions | undefined): BlockId | undefined => {
  return ifWellFormed(() => {
    const { hash, number } = block;
    const isBound = hasNoUncles(block) && hasWithdrawals(block) && hasTransactions(block.transactions, known);
    return isBound ? { hash: bytesOf(hash, 32), number: numberOf(number) } : undefined;
  }, undefined);
};
