import { smaller } from "../ethereum/bigintOrder.ts";
import { formatAuthorization } from "../ethereum/formatTransaction.ts";
import { type Data, formatData, formatQuantity, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { BLOB_TYPE, SET_CODE_TYPE, type TransactionMessage } from "../evm/transactionMessage.ts";

const DYNAMIC_FEE_TYPE = 2;
/** The chain id that geth derives from a legacy signature with `v` zero: (0 - 35) / 2 in 64 bits. */
const UNSIGNED_LEGACY_CHAIN_ID = "0x7fffffffffffffee";

/** A call as a transaction of a simulated block. Its signature is zero, and its hash includes that signature. */
export interface SimulatedTransaction {
  readonly message: TransactionMessage;
  readonly raw: Uint8Array;
  readonly hash: Hash;
}

const encodeData = (value: Data) => encodeBytes(parseData(value));
const ZERO = encodeNumber(0);

/** Encodes a message as a transaction with a signature of zeros. */
export const simulatedTransaction = (message: TransactionMessage, chainId: bigint): SimulatedTransaction => {
  const raw = message.type === 0 ? encodeLegacy(message) : encodeTyped(message, chainId);
  return { message, raw, hash: formatData(keccak256(raw)) };
};

const encodeLegacy = (message: TransactionMessage): Uint8Array => {
  const { nonce, maxFeePerGas, gas, to, value, input } = message;
  return encodeList([
    encodeNumber(nonce),
    encodeNumber(maxFeePerGas),
    encodeNumber(gas),
    encodeData(to ?? "0x"),
    encodeNumber(value),
    encodeBytes(input),
    ZERO,
    ZERO,
    ZERO,
  ]);
};

const encodeTyped = (message: TransactionMessage, chainId: bigint): Uint8Array => {
  const fields = [
    encodeNumber(chainId),
    encodeNumber(message.nonce),
    encodeNumber(message.maxPriorityFeePerGas),
    encodeNumber(message.maxFeePerGas),
    encodeNumber(message.gas),
    encodeData(message.to ?? "0x"),
    encodeNumber(message.value),
    encodeBytes(message.input),
    encodeList(message.accessList.map(encodeAccess)),
  ];
  if (message.type === BLOB_TYPE) {
    fields.push(encodeNumber(message.maxFeePerBlobGas), encodeList(message.blobVersionedHashes.map(encodeData)));
  }
  if (message.type === SET_CODE_TYPE) {
    fields.push(encodeList(message.authorizationList.map(encodeAuthorization)));
  }
  return concatBytes([Uint8Array.of(message.type), encodeList([...fields, ZERO, ZERO, ZERO])]);
};

const encodeAccess = ({ address, storageKeys }: TransactionMessage["accessList"][number]) =>
  encodeList([encodeData(address), encodeList(storageKeys.map(encodeData))]);

const encodeAuthorization = (authorization: TransactionMessage["authorizationList"][number]) => {
  const { chainId, address, nonce, yParity, r, s } = authorization;
  const [tail, head] = [[yParity, r, s].map(encodeNumber), encodeNumber(chainId)];
  return encodeList([head, encodeData(address), encodeNumber(nonce), ...tail]);
};

export interface SimulatedLocation {
  readonly blockHash: Hash;
  readonly blockNumber: bigint;
  readonly blockTimestamp: bigint;
  readonly baseFee: bigint;
  readonly chainId: bigint;
}

/** Formats the transaction object of the execution API, with the sender of the client's call. */
export const formatSimulated = (
  { message, hash }: SimulatedTransaction,
  transactionIndex: number,
  block: SimulatedLocation,
): Record<string, unknown> => {
  const { type, from, to } = message;
  const isLegacy = type === 0;
  return {
    blockHash: block.blockHash,
    blockNumber: formatQuantity(block.blockNumber),
    blockTimestamp: formatQuantity(block.blockTimestamp),
    from,
    gas: formatQuantity(message.gas),
    gasPrice: formatQuantity(isLegacy ? message.maxFeePerGas : effectivePrice(message, block.baseFee)),
    hash,
    input: formatData(message.input),
    nonce: formatQuantity(message.nonce),
    to,
    transactionIndex: formatQuantity(transactionIndex),
    value: formatQuantity(message.value),
    type: formatQuantity(type),
    chainId: isLegacy ? UNSIGNED_LEGACY_CHAIN_ID : formatQuantity(block.chainId),
    v: "0x0",
    r: "0x0",
    s: "0x0",
    ...(isLegacy ? {} : formatTyped(message)),
  };
};

const effectivePrice = ({ maxFeePerGas, maxPriorityFeePerGas }: TransactionMessage, baseFee: bigint): bigint =>
  smaller(baseFee + maxPriorityFeePerGas, maxFeePerGas);

const formatTyped = (message: TransactionMessage): Record<string, unknown> => ({
  accessList: message.accessList,
  maxFeePerGas: formatQuantity(message.maxFeePerGas),
  maxPriorityFeePerGas: formatQuantity(message.maxPriorityFeePerGas),
  yParity: "0x0",
  ...(message.type === BLOB_TYPE
    ? {
        maxFeePerBlobGas: formatQuantity(message.maxFeePerBlobGas),
        blobVersionedHashes: message.blobVersionedHashes,
      }
    : {}),
  ...(message.type === SET_CODE_TYPE
    ? {
        authorizationList: message.authorizationList.map(formatAuthorization),
      }
    : {}),
});

/** Returns the transaction type that the fields require: legacy if `gasPrice` is present, otherwise EIP-7702, EIP-4844 or EIP-1559. */
export const typeOf = (fields: {
  readonly gasPrice: bigint | undefined;
  readonly blobVersionedHashes: readonly Hash[] | undefined;
  readonly authorizationList: readonly unknown[] | undefined;
}): number => {
  if (fields.gasPrice !== undefined) {
    return 0;
  }
  if (fields.authorizationList !== undefined) {
    return SET_CODE_TYPE;
  }
  return fields.blobVersionedHashes === undefined ? DYNAMIC_FEE_TYPE : BLOB_TYPE;
};
