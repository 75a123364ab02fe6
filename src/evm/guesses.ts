import type { AccountState } from "../core/stateReader.ts";
import { type Address, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { EMPTY_CODE_HASH } from "./stateOverlay.ts";

const NOTHING = new Uint8Array(0);

/** What a run reads in place of values that are not known. */
export interface Guesses {
  readonly account: AccountState;
  /** The code of `account`. */
  readonly code: Uint8Array;
  slot(address: Address): Uint8Array;
  /** Called with each known value that the run reads. */
  saw(address: Address, value: Uint8Array): void;
}

const RICH = { nonce: 1n, balance: 1n << 128n };
/**
 * Stands for a slot until its value is fetched. Large, so that balances suffice; its low 160 bits are zero, so that packed flags are
 * off and an address is the zero address, whose code is empty.
 */
const LARGE = Uint8Array.of(1, ...new Uint8Array(24));

/** Slots are large numbers and accounts have no code. */
export const largeGuesses: Guesses = {
  account: { ...RICH, codeHash: EMPTY_CODE_HASH },
  code: NOTHING,
  slot: () => LARGE,
  saw: () => {},
};

/** PUSH1 1, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN: returns `true` to whoever calls it. */
const RETURNS_TRUE = parseData("0x60015f5260205ff3");
const RETURNS_TRUE_HASH: Hash = keccak256Hex(RETURNS_TRUE);

/** Slots have the value that the same contract read last, and accounts are contracts that return `true`. One run's. */
export const createLikelyGuesses = (): Guesses => {
  const last = new Map<Address, Uint8Array>();
  return {
    account: { ...RICH, codeHash: RETURNS_TRUE_HASH },
    code: RETURNS_TRUE,
    slot: (address) => last.get(address) ?? LARGE,
    saw: (address, value) => {
      if (value.length > 0) last.set(address, value);
    },
  };
};
