import type { Address, Hash } from "./hex.ts";

export const DEPOSIT_TYPE = 0x7e;

interface Body {
  /** The EIP-2718 bytes as they stand in a block. */
  readonly raw: Uint8Array;
  readonly hash: Hash;
  /** null creates a contract. */
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
  /** As signed: 27 or 28, or with the chain id in it (EIP-155). */
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
  /** Any byte (EIP-7702): a wrong one makes this authorization void and leaves the transaction valid. */
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

/** OP stack, specs/protocol/deposits.md: no signature, no nonce, no fee. */
export interface DepositTransaction extends Body {
  readonly type: typeof DEPOSIT_TYPE;
  readonly sourceHash: Hash;
  readonly from: Address;
  readonly mint: bigint;
  readonly isSystemTx: boolean;
}

export type Transaction = SignedTransaction | DepositTransaction;

/** Bytes that are no transaction, or one of a type that is not known here. */
export class InvalidTransaction extends Error {
  override readonly name = "InvalidTransaction";
}
