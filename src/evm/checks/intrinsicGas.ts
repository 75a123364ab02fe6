import { isForkActive } from "../../ethereum/rules.ts";
import type { ActiveRules } from "../engine.ts";
import type { TransactionMessage } from "../transactionMessage.ts";

const TRANSACTION_GAS = 21_000n;
const CREATION_GAS = 32_000n;
const ZERO_BYTE_GAS = 4n;
const BYTE_GAS = 16n;
/** The cost before EIP-2028. */
const OLD_BYTE_GAS = 68n;
const ACCESS_ADDRESS_GAS = 2_400n;
const ACCESS_SLOT_GAS = 1_900n;
const AUTHORIZATION_GAS = 25_000n;
const INIT_CODE_WORD_GAS = 2n;
const FLOOR_TOKEN_GAS = 10n;
const TOKENS_OF_BYTE = 4n;
const WORD_BYTES = 32;

export interface IntrinsicGas {
  /** Charged before execution. */
  readonly intrinsic: bigint;
  /** The minimum charge of the transaction (EIP-7623). Zero before Prague. */
  readonly floor: bigint;
}

/** Returns the intrinsic gas of a message. Source: Yellow Paper, 6.2; EIP-2028, EIP-2930, EIP-3860, EIP-7623, EIP-7702. */
export const intrinsicGas = (engine: ActiveRules, message: TransactionMessage): IntrinsicGas => {
  const { input, to } = message;
  let zeros = 0;
  for (const byte of input) {
    if (byte === 0) {
      zeros++;
    }
  }
  const zeroBytes = BigInt(zeros);
  const otherBytes = BigInt(input.length - zeros);
  let intrinsic = TRANSACTION_GAS;
  if (to === null && engine.rules.fork !== "chainstart") {
    intrinsic += CREATION_GAS;
  }
  intrinsic +=
    zeroBytes * ZERO_BYTE_GAS + otherBytes * (isForkActive(engine.rules, "istanbul") ? BYTE_GAS : OLD_BYTE_GAS);
  if (to === null && engine.isActive(3860)) {
    intrinsic += BigInt(Math.ceil(input.length / WORD_BYTES)) * INIT_CODE_WORD_GAS;
  }
  for (const { storageKeys } of message.accessList) {
    intrinsic += ACCESS_ADDRESS_GAS + BigInt(storageKeys.length) * ACCESS_SLOT_GAS;
  }
  intrinsic += BigInt(message.authorizationList.length) * AUTHORIZATION_GAS;
  const tokens = zeroBytes + otherBytes * TOKENS_OF_BYTE;
  return { intrinsic, floor: engine.isActive(7623) ? TRANSACTION_GAS + tokens * FLOOR_TOKEN_GAS : 0n };
};
