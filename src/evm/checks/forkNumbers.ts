import { isForkActive, type Rules } from "../../ethereum/rules.ts";

/** The prices and limits that Amsterdam changed, in gas and bytes. What costs a byte of an access list is zero before. */
export interface ForkNumbers {
  /** The accounts that a transaction accesses. */
  readonly senderGas: bigint;
  readonly recipientGas: bigint;
  readonly valueGas: bigint;
  readonly creationGas: bigint;
  readonly accessAddressGas: bigint;
  readonly accessSlotGas: bigint;
  /** The part of an authorization that does not depend on the state. */
  readonly authorizationGas: bigint;
  /** The minimum charge of a transaction. */
  readonly floorCreationGas: bigint;
  readonly floorZeroByteGas: bigint;
  readonly floorByteGas: bigint;
  readonly floorAccessByteGas: bigint;
  /** Of opcodes, as far as the text of a halt depends on them. */
  readonly coldAccessGas: bigint;
  readonly createGas: bigint;
  readonly maxTransactionGas: bigint;
  readonly maxCodeBytes: bigint;
}

/** The cap of a transaction's gas limit (EIP-7825). From Amsterdam on it is the cap of execution alone (EIP-8037). */
export const MAX_EXECUTION_GAS = 16_777_216n;

/** Sources: Yellow Paper, 6.2; EIP-170, EIP-2929, EIP-2930, EIP-7623, EIP-7702, EIP-7825. */
const BEFORE_AMSTERDAM: ForkNumbers = {
  senderGas: 21_000n,
  recipientGas: 0n,
  valueGas: 0n,
  creationGas: 32_000n,
  accessAddressGas: 2_400n,
  accessSlotGas: 1_900n,
  authorizationGas: 25_000n,
  floorCreationGas: 0n,
  floorZeroByteGas: 10n,
  floorByteGas: 40n,
  floorAccessByteGas: 0n,
  coldAccessGas: 2_600n,
  createGas: 32_000n,
  maxTransactionGas: MAX_EXECUTION_GAS,
  maxCodeBytes: 24_576n,
};

/** Sources: EIP-2780, EIP-7954, EIP-7976, EIP-7981, EIP-8037, EIP-8038. */
const AMSTERDAM: ForkNumbers = {
  senderGas: 12_000n,
  recipientGas: 3_000n,
  valueGas: 6_000n,
  creationGas: 12_000n,
  // Each entry also pays for its bytes (EIP-7981): 20 of an address, 32 of a slot.
  accessAddressGas: 2_900n + 20n * 64n,
  accessSlotGas: 2_000n + 32n * 64n,
  authorizationGas: 7_816n,
  floorCreationGas: 12_000n,
  floorZeroByteGas: 64n,
  floorByteGas: 64n,
  floorAccessByteGas: 64n,
  coldAccessGas: 3_000n,
  createGas: 12_000n,
  maxTransactionGas: 2n ** 32n - 1n,
  maxCodeBytes: 65_536n,
};

export const forkNumbers = (rules: Rules): ForkNumbers =>
  isForkActive(rules, "amsterdam") ? AMSTERDAM : BEFORE_AMSTERDAM;
