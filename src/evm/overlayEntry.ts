import { KECCAK256_NULL } from "@ethereumjs/util";
import type { AccountChange, AccountState } from "../core/stateReader.ts";
import { type Address, formatData, type Hash, parseData } from "../ethereum/hex.ts";

export const EMPTY_CODE_HASH: Hash = formatData(KECCAK256_NULL);

export interface OverlayAccount {
  nonce: bigint;
  balance: bigint;
  codeHash: Uint8Array;
  hasStorage: boolean;
}

/** One account of a StateOverlay. */
export interface OverlayEntry extends OverlayAccount {
  readonly address: Address;
  exists: boolean;
  /** Undefined until it is read. */
  code: Uint8Array | undefined;
  /** Current values of the slots that were read or written. */
  slots: Map<Hash, Uint8Array>;
  /** Slots outside `slots` are zero, whatever the reader returns. */
  isCleared: boolean;
  /** Values before this transaction of the slots that it wrote (EIP-2200). */
  originals: Map<Hash, Uint8Array>;
  /** The transaction of `originals`. */
  originalsOf: number;
  isWritten: boolean;
  isCodeWritten: boolean;
  readonly writtenSlots: Set<Hash>;
}

/** Makes the entry of an account that was read. `preset`: slots that were written before. */
export const createEntry = (
  address: Address,
  account: AccountState | undefined,
  preset: Map<Hash, Uint8Array> | undefined,
): OverlayEntry => ({
  address,
  exists: account !== undefined,
  nonce: account?.nonce ?? 0n,
  balance: account?.balance ?? 0n,
  codeHash:
    account === undefined || account.codeHash === EMPTY_CODE_HASH ? KECCAK256_NULL : parseData(account.codeHash),
  code: undefined,
  slots: preset ?? new Map(),
  isCleared: false,
  hasStorage: account?.hasStorage ?? false,
  originals: new Map(),
  originalsOf: 0,
  isWritten: false,
  isCodeWritten: false,
  writtenSlots: new Set(),
});

/** Whether the account is empty. Source: EIP-161. */
export const isEmpty = ({ nonce, balance, codeHash }: OverlayAccount): boolean =>
  nonce === 0n && balance === 0n && codeHash === KECCAK256_NULL;

/** Returns the writes to an account, as plain data. */
export const changeOf = (entry: OverlayEntry): AccountChange => {
  const { exists, isCleared, isCodeWritten, code } = entry;
  return {
    account: exists ? accountOf(entry) : undefined,
    ...(isCodeWritten && code !== undefined ? { code } : {}),
    isCleared,
    slots: writtenSlots(entry),
  };
};

const accountOf = ({ nonce, balance, codeHash, hasStorage }: OverlayAccount): AccountState => ({
  nonce,
  balance,
  codeHash: formatData(codeHash),
  ...(hasStorage ? { hasStorage } : {}),
});

const writtenSlots = ({ writtenSlots, slots, isCleared }: OverlayEntry): AccountChange["slots"] => {
  const written: (readonly [Hash, Uint8Array])[] = [];
  for (const slot of writtenSlots) {
    const value = slots.get(slot);
    if (value !== undefined && !(isCleared && value.length === 0)) {
      written.push([slot, value]);
    }
  }
  return written;
};
