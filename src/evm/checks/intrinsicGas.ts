import { isForkActive } from "../../ethereum/rules.ts";
import type { ActiveRules } from "../engine.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import { type ForkNumbers, forkNumbers } from "./forkNumbers.ts";

const ZERO_BYTE_GAS = 4n;
const BYTE_GAS = 16n;
/** The cost before EIP-2028. */
const OLD_BYTE_GAS = 68n;
const INIT_CODE_WORD_GAS = 2n;
const WORD_BYTES = 32;
const ADDRESS_BYTES = 20n;
const SLOT_BYTES = 32n;

export interface IntrinsicGas {
  /** Charged before execution. */
  readonly intrinsic: bigint;
  /** The minimum charge of the transaction (EIP-7623, EIP-7976). Zero before Prague. */
  readonly floor: bigint;
}

/** Returns the intrinsic gas of a message. Source: Yellow Paper, 6.2; EIP-2028, EIP-2780, EIP-2930, EIP-3860, EIP-7623, EIP-7702. */
export const intrinsicGas = (engine: ActiveRules, message: TransactionMessage): IntrinsicGas => {
  const { rules } = engine;
  const { input, to, accessList, authorizationList } = message;
  const numbers = forkNumbers(rules);
  let zeros = 0;
  for (const byte of input) {
    if (byte === 0) {
      zeros++;
    }
  }
  const zeroBytes = BigInt(zeros);
  const otherBytes = BigInt(input.length - zeros);
  let intrinsic = accountsGas(numbers, message, rules.fork === "chainstart" ? 0n : numbers.creationGas);
  intrinsic += zeroBytes * ZERO_BYTE_GAS + otherBytes * (isForkActive(rules, "istanbul") ? BYTE_GAS : OLD_BYTE_GAS);
  if (to === null && engine.isActive(3860)) {
    intrinsic += BigInt(Math.ceil(input.length / WORD_BYTES)) * INIT_CODE_WORD_GAS;
  }
  let accessBytes = 0n;
  for (const { storageKeys } of accessList) {
    const slots = BigInt(storageKeys.length);
    intrinsic += numbers.accessAddressGas + slots * numbers.accessSlotGas;
    accessBytes += ADDRESS_BYTES + slots * SLOT_BYTES;
  }
  intrinsic += BigInt(authorizationList.length) * numbers.authorizationGas;
  if (!engine.isActive(7623)) {
    return { intrinsic, floor: 0n };
  }
  const floor =
    accountsGas(numbers, message, numbers.floorCreationGas) +
    zeroBytes * numbers.floorZeroByteGas +
    otherBytes * numbers.floorByteGas +
    accessBytes * numbers.floorAccessByteGas;
  return { intrinsic, floor };
};

/** Returns the gas for the accounts that every transaction accesses. Source: EIP-2780. */
const accountsGas = (
  { senderGas, recipientGas, valueGas }: ForkNumbers,
  { from, to, value }: TransactionMessage,
  creationGas: bigint,
): bigint => {
  if (to === null) {
    return senderGas + creationGas;
  }
  return to === from ? senderGas : senderGas + recipientGas + (value > 0n ? valueGas : 0n);
};
