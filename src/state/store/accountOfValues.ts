import type { AccountState } from "../../core/stateReader.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { ZERO_VALUE } from "./writtenValues.ts";

interface AccountFields {
  readonly balance: bigint;
  readonly nonce: bigint;
  /** 64 digits of hex, zero for no code. */
  readonly codeHash: string;
}

/** Returns the account that has these values. An empty account counts as one that does not exist (EIP-161). */
export const accountOfValues = ({ balance, nonce, codeHash }: AccountFields): AccountState | undefined => {
  const hasCode = codeHash !== ZERO_VALUE;
  return hasCode || balance > 0n || nonce > 0n
    ? { balance, nonce, codeHash: hasCode ? `0x${codeHash}` : EMPTY_CODE_HASH }
    : undefined;
};
