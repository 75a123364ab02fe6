import { isForkActive } from "../../ethereum/rules.ts";
import type { ActiveRules } from "../engine.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import * as amsterdam from "./amsterdamGas.ts";

const TRANSACTION_GAS = 21_000n;
const CREATION_GAS = 32_000n;
const ZERO_BYTE_GAS = 4n;
const BYTE_GAS = 16n;
/** The cost before EIP-2028. */
const OLD_BYTE_GAS = 68n;
const PRICES = { ACCESS_ADDRESS_GAS: 2_400n, ACCESS_SLOT_GAS: 1_900n, AUTHORIZATION_GAS: 25_000n } as const;
const INIT_CODE_WORD_GAS = 2n;
const FLOOR_TOKEN_GAS = 10n;
const TOKENS_OF_BYTE = 4n;
const WORD_BYTES = 32;

export interface IntrinsicGas {
  /** Charged before execution. */
  readonly intrinsic: bigint;
  /** The minimum charge of the transaction (EIP-7623, EIP-7976). Zero before Prague. */
  readonly floor: bigint;
}

/** Returns the intrinsic gas of a message. Source: Yellow Paper, 6.2; EIP-2028, EIP-2780, EIP-2930, EIP-3860, EIP-7623, EIP-7702. */
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
  const isAmsterdam = engine.isActive(2780);
  const prices = isAmsterdam ? amsterdam : PRICES;
  let intrinsic = isAmsterdam ? amsterdam.accountsGas(message) : transactionGas(engine, message);
  intrinsic +=
    zeroBytes * ZERO_BYTE_GAS + otherBytes * (isForkActive(engine.rules, "istanbul") ? BYTE_GAS : OLD_BYTE_GAS);
  if (to === null && engine.isActive(3860)) {
    intrinsic += BigInt(Math.ceil(input.length / WORD_BYTES)) * INIT_CODE_WORD_GAS;
  }
  for (const { storageKeys } of message.accessList) {
    intrinsic += prices.ACCESS_ADDRESS_GAS + BigInt(storageKeys.length) * prices.ACCESS_SLOT_GAS;
  }
  intrinsic += BigInt(message.authorizationList.length) * prices.AUTHORIZATION_GAS;
  if (isAmsterdam) {
    return { intrinsic, floor: amsterdam.floorGas(message) };
  }
  const tokens = zeroBytes + otherBytes * TOKENS_OF_BYTE;
  return { intrinsic, floor: engine.isActive(7623) ? TRANSACTION_GAS + tokens * FLOOR_TOKEN_GAS : 0n };
};

const transactionGas = ({ rules }: ActiveRules, { to }: TransactionMessage): bigint =>
  to === null && rules.fork !== "chainstart" ? TRANSACTION_GAS + CREATION_GAS : TRANSACTION_GAS;
