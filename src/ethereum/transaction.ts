import { type Address, type Hash, parseData } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import { bytesLength, concatBytes, encodeBytes, encodeList, encodeNumber, numberBytes } from "./rlp.ts";

export const DEPOSIT_TYPE = 0x7e;

interface Body {
  /** The EIP-2718 bytes, as in a block. */
  readonly raw: Uint8Array;
  readonly hash: Hash;
  /** `null` creates a contract. */
  readonly to: Address | null;
  readonly value: bigint;
  readonly gas: bigint;
  readonly input: Uint8Array;
}

export interface Signature {
  readonly yParity: 0 | 1;
  readonly r: bigint;
  readonly s: bigint;
}

interface Signed extends Body {
  readonly nonce: bigint;
  readonly signature: Signature;
}

export interface AccessListEntry {
  readonly address: Address;
  readonly storageKeys: readonly Hash[];
}

interface WithAccessList extends Signed {
  readonly chainId: bigint;
  readonly accessList: readonly AccessListEntry[];
}

interface WithDynamicFee extends WithAccessList {
  readonly maxPriorityFeePerGas: bigint;
  readonly maxFeePerGas: bigint;
}

export interface LegacyTransaction extends Signed {
  readonly type: 0;
  readonly gasPrice: bigint;
  /** As signed: 27 or 28, or a value that contains the chain id (EIP-155). */
  readonly v: bigint;
  readonly chainId: bigint | undefined;
}

export interface AccessListTransaction extends WithAccessList {
  readonly type: 1;
  readonly gasPrice: bigint;
}

export interface DynamicFeeTransaction extends WithDynamicFee {
  readonly type: 2;
}

export interface BlobTransaction extends WithDynamicFee {
  readonly type: 3;
  readonly maxFeePerBlobGas: bigint;
  readonly blobVersionedHashes: readonly Hash[];
}

export interface Authorization {
  readonly chainId: bigint;
  readonly address: Address;
  readonly nonce: bigint;
  /** Any byte (EIP-7702). A wrong value invalidates this authorization, but not the transaction. */
  readonly yParity: bigint;
  readonly r: bigint;
  readonly s: bigint;
}

export interface SetCodeTransaction extends WithDynamicFee {
  readonly type: 4;
  readonly authorizationList: readonly Authorization[];
}

export type SignedTransaction =
  | LegacyTransaction
  | AccessListTransaction
  | DynamicFeeTransaction
  | BlobTransaction
  | SetCodeTransaction;

/** A deposit has no signature, no nonce and no fee. Source: https://specs.optimism.io/protocol/deposits.html */
export interface DepositTransaction extends Body {
  readonly type: typeof DEPOSIT_TYPE;
  readonly sourceHash: Hash;
  readonly from: Address;
  readonly mint: bigint;
  readonly isSystemTx: boolean;
}

export type Transaction = SignedTransaction | DepositTransaction;

/** The bytes are not a transaction, or forebay does not support its type. */
export class InvalidTransaction extends Error {
  override readonly name: string = "InvalidTransaction";
}

/** The bytes cannot be read, because forebay does not know the type. They may be right. Their hash is the keccak-256 of all. */
export class UnknownTransactionType extends InvalidTransaction {
  override readonly name = "UnknownTransactionType";
  readonly type: number;

  constructor(type: number) {
    super(`unsupported transaction type ${type}`);
    this.type = type;
  }
}

export interface Deposit {
  readonly sourceHash: Hash;
  readonly from: Address;
  readonly to: Address | null;
  readonly mint: bigint;
  readonly value: bigint;
  readonly gas: bigint;
  readonly isSystemTx: boolean;
  readonly input: Uint8Array;
}

/**
 * Encodes a deposit as EIP-2718 bytes. Their keccak-256 is the transaction hash.
 * Source: https://specs.optimism.io/protocol/deposits.html
 */
export const encodeDeposit = (deposit: Deposit): Uint8Array =>
  concatBytes([
    Uint8Array.of(DEPOSIT_TYPE),
    encodeList([
      encodeBytes(parseData(deposit.sourceHash)),
      encodeBytes(parseData(deposit.from)),
      encodeBytes(parseData(deposit.to ?? "0x")),
      encodeNumber(deposit.mint),
      encodeNumber(deposit.value),
      encodeNumber(deposit.gas),
      encodeNumber(deposit.isSystemTx ? 1 : 0),
      encodeBytes(deposit.input),
    ]),
  ]);

/** The input of sender recovery. `signature` is r and s, 32 bytes each. */
export interface SignatureParts {
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
  readonly recoveryId: 0 | 1;
}

/** Derives the input of sender recovery from the raw bytes, without encoding the transaction again. */
export const signatureParts = (transaction: SignedTransaction): SignatureParts => {
  const { raw, signature } = transaction;
  const isLegacy = transaction.type === 0;
  const v = isLegacy ? transaction.v : BigInt(signature.yParity);
  const tail = [v, signature.r, signature.s].reduce((sum, part) => sum + bytesLength(numberBytes(part)), 0);
  const listAt = isLegacy ? 0 : 1;
  const listByte = raw[listAt] ?? 0;
  const start = listAt + (listByte < 0xf8 ? 1 : listByte - 0xf7 + 1);
  // The signed fields precede the signature with the same bytes. Only the prefix of the list differs.
  const body = raw.subarray(start, raw.length - tail);
  const bytes = 32;
  const rs = new Uint8Array(2 * bytes);
  const [r, s] = [numberBytes(signature.r), numberBytes(signature.s)];
  rs.set(r, bytes - r.length);
  rs.set(s, 2 * bytes - s.length);
  return { digest: keccak256(signedBytes(transaction, body)), signature: rs, recoveryId: signature.yParity };
};

/** Returns the signed bytes: EIP-155 for a legacy transaction with a chain id, EIP-2718 for other types. */
const signedBytes = (transaction: SignedTransaction, body: Uint8Array): Uint8Array => {
  if (transaction.type !== 0) {
    return concatBytes([Uint8Array.of(transaction.type), encodeList([body])]);
  }
  if (transaction.chainId === undefined) {
    return encodeList([body]);
  }
  return encodeList([body, encodeNumber(transaction.chainId), encodeNumber(0), encodeNumber(0)]);
};
