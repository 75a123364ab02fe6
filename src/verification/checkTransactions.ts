import { type Data, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { POST_EXEC_TYPE } from "../ethereum/postExec.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { encodeRpcTransaction } from "./encodeRpcTransaction.ts";
import { type Finding, failed, failIfMalformed, partial, passed, type UnknownItem } from "./findings.ts";
import { bytesOf, dataOf, fieldsOf, isSame, listOf, numberOf, quantityOf, rpcTypeOf } from "./jsonFields.ts";

/** What is known beside the transactions of a block. Plain data, sent to a thread. */
export interface TransactionFacts {
  /** The chain has a time for Lagoon: its 0x7D transactions are post-exec transactions. */
  readonly hasLagoon?: boolean | undefined;
  /** The bytes of transactions of unknown types, by index, as a node stated them. */
  readonly raws?: ReadonlyMap<number, Data>;
}

/** Checks that the hash of a transaction object is the hash of its fields. */
export const checkTransactionHash = (fields: Fields, { hasLagoon }: TransactionFacts = {}): Finding =>
  failIfMalformed("transactions", () => {
    const raw = encodeRpcTransaction(fields);
    const type = rpcTypeOf(fields);
    if (raw === undefined) {
      const mustBeKnown = hasLagoon === true && type === POST_EXEC_TYPE;
      // A transaction of a pool has no index.
      const index = Number(quantityOf(fields.transactionIndex) ?? 0n);
      return mustBeKnown
        ? failed("transactions")
        : partial("transactions", [{ index, type, hash: bytesOf(fields.hash, 32) }]);
    }
    return isSame(fields.hash, keccak256Hex(raw)) ? passed("transactions") : failed("transactions");
  });

const hasExpectedLocation = (fields: Fields, index: number, block: Fields): boolean =>
  numberOf(fields.transactionIndex) === BigInt(index) &&
  isSame(fields.blockHash, dataOf(block.hash)) &&
  numberOf(fields.blockNumber) === numberOf(block.number);

/** Returns the stated bytes of a transaction of an unknown type, unless they are of another type. */
const statedRaw = (index: number, type: number, { raws }: TransactionFacts): Uint8Array | undefined => {
  const raw = raws?.get(index);
  const bytes = raw === undefined ? undefined : parseData(raw);
  return bytes?.[0] === type ? bytes : undefined;
};

/** Returns the bytes of the transaction at an index, whose hash they have. Undefined if they are not known, `wrong` if it is not there. */
const rawAt = (
  fields: Fields,
  index: number,
  block: Fields,
  facts: TransactionFacts,
): Uint8Array | "wrong" | undefined => {
  const type = rpcTypeOf(fields);
  const own = encodeRpcTransaction(fields);
  const mustBeKnown = facts.hasLagoon === true && type === POST_EXEC_TYPE;
  const raw = own ?? (mustBeKnown ? undefined : statedRaw(index, type, facts));
  const isRight = raw === undefined ? !mustBeKnown : isSame(fields.hash, keccak256Hex(raw));
  return isRight && hasExpectedLocation(fields, index, block) ? raw : "wrong";
};

/**
 * Checks a block's full transactions: transactionsRoot, and the hash, block and index of each. `partial`: there are transactions of
 * unknown types without their bytes.
 */
export const checkTransactions = (block: Fields, facts: TransactionFacts = {}): Finding =>
  failIfMalformed("transactions", () => {
    const raws: Uint8Array[] = [];
    const unknown: UnknownItem[] = [];
    for (const [index, item] of listOf(block.transactions).entries()) {
      const fields = fieldsOf(item);
      const raw = rawAt(fields, index, block, facts);
      if (raw === "wrong") {
        return failed("transactions");
      }
      if (raw === undefined) {
        unknown.push({ index, type: rpcTypeOf(fields), hash: bytesOf(fields.hash, 32) });
      } else {
        raws.push(raw);
      }
    }
    if (unknown.length > 0) {
      return partial("transactions", unknown);
    }
    return isSame(block.transactionsRoot, orderedTrieRoot(raws)) ? passed("transactions") : failed("transactions");
  });

const EMPTY_ROOT: Hash = orderedTrieRoot([]);

/** Whether the block has no transactions if and only if its transactionsRoot is that of an empty list. A list of hashes has no root. */
export const matchesEmptyRoot = ({ transactions, transactionsRoot }: Fields): boolean =>
  Array.isArray(transactions) && (transactions.length === 0) === isSame(transactionsRoot, EMPTY_ROOT);
