import type { TransactionMessage } from "../transactionMessage.ts";

const SENDER_GAS = 12_000n;
const RECIPIENT_GAS = 3_000n;
const VALUE_GAS = 6_000n;
const CREATION_GAS = 12_000n;
const ADDRESS_BYTES = 20n;
const SLOT_BYTES = 32n;
/** EIP-7976, and EIP-7981 for access lists. */
const FLOOR_BYTE_GAS = 64n;

/** EIP-8038. Each entry also pays for its bytes (EIP-7981). */
export const ACCESS_ADDRESS_GAS = 2_900n + ADDRESS_BYTES * FLOOR_BYTE_GAS;
export const ACCESS_SLOT_GAS = 2_000n + SLOT_BYTES * FLOOR_BYTE_GAS;
/** The part of an authorization that does not depend on the state (EIP-8037). */
export const AUTHORIZATION_GAS = 7_816n;

/** Returns the gas for the accounts that every transaction accesses. Source: EIP-2780. */
export const accountsGas = ({ from, to, value }: TransactionMessage): bigint => {
  if (to === null) {
    return SENDER_GAS + CREATION_GAS;
  }
  if (to === from) {
    return SENDER_GAS;
  }
  return SENDER_GAS + RECIPIENT_GAS + (value > 0n ? VALUE_GAS : 0n);
};

/** Returns the minimum charge of a transaction. Sources: EIP-2780, EIP-7976, EIP-7981. */
export const floorGas = (message: TransactionMessage): bigint => {
  let bytes = BigInt(message.input.length);
  for (const { storageKeys } of message.accessList) {
    bytes += ADDRESS_BYTES + BigInt(storageKeys.length) * SLOT_BYTES;
  }
  return accountsGas(message) + bytes * FLOOR_BYTE_GAS;
};
