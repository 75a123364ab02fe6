import { type Data, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { DEPOSIT_TYPE, encodeDeposit } from "../ethereum/transaction.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { type Finding, failed, failIfMalformed, passed, uncomputable } from "./findings.ts";
import { bytesOf, dataOf, fieldsOf, isAbsent, isSame, listOf, numberOf } from "./jsonFields.ts";

const BLOB_TYPE = 3;

const number = (value: unknown): Uint8Array => encodeNumber(numberOf(value));
const data = (value: Data): Uint8Array => encodeBytes(parseData(value));
const hash = (value: unknown): Uint8Array => data(bytesOf(value, 32));
const recipient = (value: unknown): Uint8Array => data(isAbsent(value) ? "0x" : bytesOf(value, 20));
const inputOf = ({ input, data: older }: Fields): Data => dataOf(input ?? older);

const accessList = (value: unknown): Uint8Array =>
  encodeList(
    listOf(value ?? []).map((item) => {
      const { address, storageKeys } = fieldsOf(item);
      return encodeList([data(bytesOf(address, 20)), encodeList(listOf(storageKeys ?? []).map(hash))]);
    }),
  );

const authorizations = (value: unknown): Uint8Array =>
  encodeList(
    listOf(value).map((item) => {
      const { chainId, address, nonce, yParity, v, r, s } = fieldsOf(item);
      return encodeList([
        ...[number(chainId), data(bytesOf(address, 20)), number(nonce)],
        ...[number(yParity ?? v), number(r), number(s)],
      ]);
    }),
  );

const call = (fields: Fields): Uint8Array[] => [
  number(fields.gas),
  recipient(fields.to),
  number(fields.value),
  data(inputOf(fields)),
];

const signature = ({ yParity, v, r, s }: Fields): Uint8Array[] => [number(v ?? yParity), number(r), number(s)];

const dynamicFee = (fields: Fields): Uint8Array[] => [
  ...[number(fields.chainId), number(fields.nonce)],
  ...[number(fields.maxPriorityFeePerGas), number(fields.maxFeePerGas)],
  ...call(fields),
  accessList(fields.accessList),
];

const typed = (type: number, items: readonly Uint8Array[]): Uint8Array =>
  concatBytes([Uint8Array.of(type), encodeList(items)]);

const encodeRpcDeposit = (fields: Fields): Uint8Array =>
  encodeDeposit({
    sourceHash: bytesOf(fields.sourceHash, 32),
    from: bytesOf(fields.from, 20),
    to: isAbsent(fields.to) ? null : bytesOf(fields.to, 20),
    mint: isAbsent(fields.mint) ? 0n : numberOf(fields.mint),
    value: numberOf(fields.value),
    gas: numberOf(fields.gas),
    isSystemTx: fields.isSystemTx === true,
    input: parseData(inputOf(fields)),
  });

const ENCODERS = new Map<bigint, (fields: Fields) => Uint8Array>([
  [0n, (fields) => encodeList([number(fields.nonce), number(fields.gasPrice), ...call(fields), ...signature(fields)])],
  [
    1n,
    (fields) =>
      typed(1, [
        ...[number(fields.chainId), number(fields.nonce), number(fields.gasPrice)],
        ...[...call(fields), accessList(fields.accessList), ...signature(fields)],
      ]),
  ],
  [2n, (fields) => typed(2, [...dynamicFee(fields), ...signature(fields)])],
  [
    3n,
    (fields) =>
      typed(3, [
        ...[...dynamicFee(fields), number(fields.maxFeePerBlobGas)],
        ...[encodeList(listOf(fields.blobVersionedHashes).map(hash)), ...signature(fields)],
      ]),
  ],
  [4n, (fields) => typed(4, [...dynamicFee(fields), authorizations(fields.authorizationList), ...signature(fields)])],
  [BigInt(DEPOSIT_TYPE), encodeRpcDeposit],
]);

/** Encodes a transaction object as EIP-2718 bytes; undefined if its type is unknown. Throws MalformedField. */
export const encodeRpcTransaction = (fields: Fields): Uint8Array | undefined =>
  // Nodes from before EIP-2718 return no type.
  ENCODERS.get(isAbsent(fields.type) ? 0n : numberOf(fields.type))?.(fields);

/** Checks that the hash of a transaction object is the hash of its fields. */
export const checkTransactionHash = (fields: Fields): Finding =>
  failIfMalformed("transactions", () => {
    const raw = encodeRpcTransaction(fields);
    if (raw === undefined) {
      return uncomputable("transactions");
    }
    return isSame(fields.hash, keccak256Hex(raw)) ? passed("transactions") : failed("transactions");
  });

const hasExpectedLocation = (fields: Fields, index: number, block: Fields): boolean =>
  numberOf(fields.transactionIndex) === BigInt(index) &&
  isSame(fields.blockHash, dataOf(block.hash)) &&
  numberOf(fields.blockNumber) === numberOf(block.number);

/** Checks a block's full transactions: transactionsRoot, and the hash, block and index of each. */
export const checkTransactions = (block: Fields): Finding =>
  failIfMalformed("transactions", () => {
    const raws: Uint8Array[] = [];
    for (const [index, item] of listOf(block.transactions).entries()) {
      const fields = fieldsOf(item);
      const raw = encodeRpcTransaction(fields);
      if (raw === undefined) {
        return uncomputable("transactions");
      }
      if (!isSame(fields.hash, keccak256Hex(raw)) || !hasExpectedLocation(fields, index, block)) {
        return failed("transactions");
      }
      raws.push(raw);
    }
    return isSame(block.transactionsRoot, orderedTrieRoot(raws)) ? passed("transactions") : failed("transactions");
  });

const EMPTY_ROOT: Hash = orderedTrieRoot([]);

/** Whether the block has no transactions exactly if its transactionsRoot is that of an empty list. A list of hashes has no root. */
export const matchesEmptyRoot = ({ transactions, transactionsRoot }: Fields): boolean =>
  Array.isArray(transactions) && (transactions.length === 0) === isSame(transactionsRoot, EMPTY_ROOT);

/** Checks the hash of a transaction's bytes. Some nodes return `0x` for an unknown transaction, which passes. */
export const checkRawTransaction = (raw: string, hash: string): Finding =>
  failIfMalformed("transaction", () => {
    if (raw === "0x") {
      return passed("transaction");
    }
    const bytes = parseData(dataOf(raw));
    if (isSame(hash, keccak256Hex(bytes))) {
      return passed("transaction");
    }
    // A blob transaction from the node's pool includes its blobs, which its hash does not cover.
    if (bytes[0] !== BLOB_TYPE) {
      return failed("transaction");
    }
    try {
      return isSame(hash, parseTransaction(bytes).hash) ? passed("transaction") : failed("transaction");
    } catch {
      return failed("transaction");
    }
  });
