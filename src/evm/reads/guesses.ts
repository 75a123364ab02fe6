import type { AccountState } from "../../core/stateReader.ts";
import { type Address, type Hash, parseData } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../ethereum/keccak.ts";

const NOTHING = new Uint8Array(0);

/** The values that a run reads instead of values that are not cached. */
export interface GuessedValues {
  readonly account: AccountState;
  /** The code of `account`. */
  readonly code: Uint8Array;
  slot(address: Address): Uint8Array;
  /** Called with each cached slot value that the run reads. */
  saw?(address: Address, value: Uint8Array): void;
}

const RICH = { nonce: 1n, balance: 1n << 128n };
/**
 * The guess for a slot. The number is large, so balances suffice. Its low 160 bits are zero: packed flags are off,
 * and an address is the zero address, which has no code.
 */
const LARGE = Uint8Array.of(1, ...new Uint8Array(24));

/** Guesses that slots are large numbers and that accounts have no code. */
export const largeGuesses: GuessedValues = {
  account: { ...RICH, codeHash: EMPTY_CODE_HASH },
  code: NOTHING,
  slot: () => LARGE,
};

/** PUSH1 1, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN: returns `true` to every caller. */
const RETURNS_TRUE = parseData("0x60015f5260205ff3");
const RETURNS_TRUE_HASH: Hash = keccak256Hex(RETURNS_TRUE);

/**
 * Guesses that a slot has the value that the run read last from the same contract, and that accounts are contracts that return
 * `true`. For one run.
 */
const createLikelyGuesses = (): GuessedValues => {
  const last = new Map<Address, Uint8Array>();
  return {
    account: { ...RICH, codeHash: RETURNS_TRUE_HASH },
    code: RETURNS_TRUE,
    slot: (address) => last.get(address) ?? LARGE,
    saw: (address, value) => {
      if (value.length > 0) {
        last.set(address, value);
      }
    },
  };
};

/** Each kind of guess leads to other branches of the code. One execution in this number uses large numbers. */
const LARGE_EVERY = 4;

/** Returns guesses for a step that was executed `count` times. */
export const alternatingGuesses = (count: number): GuessedValues =>
  count % LARGE_EVERY === 0 ? largeGuesses : createLikelyGuesses();
