import type { Address, Data, Hash } from "../../../src/ethereum/hex.ts";

/** Reads the value of a key; undefined if it was never written. */
export type ReadValue = (key: string) => string | undefined;

export const balanceKey = (address: Address): string => `b${address}`;
export const nonceKey = (address: Address): string => `n${address}`;
export const codeKey = (address: Address): string => `c${address}`;
/** The number of times that all slots of the account became zero. It is a part of the keys of its slots. */
export const clearedKey = (address: Address): string => `g${address}`;
export const slotKey = (address: Address, cleared: string, slot: Hash): string => `s${address}:${cleared}:${slot}`;

export const ZERO_WORD: Hash = `0x${"0".repeat(64)}`;

export const wordOf = (value: bigint): Hash => `0x${value.toString(16).padStart(64, "0")}`;

/** Reads accounts and slots from values by key. */
export class StateValuesReader {
  readonly read: ReadValue;

  constructor(read: ReadValue) {
    this.read = read;
  }

  balance(address: Address): bigint {
    return BigInt(this.read(balanceKey(address)) ?? 0);
  }

  nonce(address: Address): bigint {
    return BigInt(this.read(nonceKey(address)) ?? 0);
  }

  code(address: Address): Data {
    return (this.read(codeKey(address)) ?? "0x") as Data;
  }

  slot(address: Address, slot: Hash): Hash {
    return (this.read(slotKey(address, this.cleared(address), slot)) ?? ZERO_WORD) as Hash;
  }

  cleared(address: Address): string {
    return this.read(clearedKey(address)) ?? "0";
  }

  exists(address: Address): boolean {
    return this.balance(address) > 0n || this.nonce(address) > 0n || this.code(address) !== "0x";
  }
}
