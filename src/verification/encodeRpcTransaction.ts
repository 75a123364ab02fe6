import { type Data, isData, parseData } from "../ethereum/hex.ts";
import { POST_EXEC_TYPE, type PostExec, parsePostExecInput } from "../ethereum/postExec.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { DEPOSIT_TYPE, encodeDeposit } from "../ethereum/transaction.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { bytesOf, dataOf, fieldsOf, isAbsent, isNumber, listOf, numberOf, rpcTypeOf } from "./jsonFields.ts";

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

/** Whether a member is zero, as a quantity or as an address. */
const isZero = (value: unknown): boolean =>
  isAbsent(value) || (isData(value) && BigInt(value) === 0n) || value === "0x0";

/**
 * Parses the object of a post-exec transaction by its input, because nodes add members. Undefined if the payload is not one of its
 * block, or if it pays something: another chain's transaction of this type.
 */
export const parseRpcPostExec = (fields: Fields): PostExec | undefined => {
  const { input, blockNumber, from, gas, value } = fields;
  if (rpcTypeOf(fields) !== POST_EXEC_TYPE || !isData(input) || ![from, gas, value].every(isZero)) {
    return undefined;
  }
  const postExec = parsePostExecInput(parseData(input));
  return postExec !== undefined && isNumber(blockNumber, postExec.blockNumber) ? postExec : undefined;
};

const ENCODERS = new Map<number, (fields: Fields) => Uint8Array | undefined>([
  [0, (fields) => encodeList([number(fields.nonce), number(fields.gasPrice), ...call(fields), ...signature(fields)])],
  [
    1,
    (fields) =>
      typed(1, [
        ...[number(fields.chainId), number(fields.nonce), number(fields.gasPrice)],
        ...[...call(fields), accessList(fields.accessList), ...signature(fields)],
      ]),
  ],
  [2, (fields) => typed(2, [...dynamicFee(fields), ...signature(fields)])],
  [
    3,
    (fields) =>
      typed(3, [
        ...[...dynamicFee(fields), number(fields.maxFeePerBlobGas)],
        ...[encodeList(listOf(fields.blobVersionedHashes).map(hash)), ...signature(fields)],
      ]),
  ],
  [4, (fields) => typed(4, [...dynamicFee(fields), authorizations(fields.authorizationList), ...signature(fields)])],
  [DEPOSIT_TYPE, encodeRpcDeposit],
  [POST_EXEC_TYPE, (fields) => parseRpcPostExec(fields)?.raw],
]);

/** Encodes a transaction object as EIP-2718 bytes; undefined if its type is unknown. Throws MalformedField. */
export const encodeRpcTransaction = (fields: Fields): Uint8Array | undefined =>
  ENCODERS.get(rpcTypeOf(fields))?.(fields);
