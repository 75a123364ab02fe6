import type { StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { ZERO_VALUE } from "./writtenValues.ts";

const NOTHING = new Uint8Array(0);
const DIGIT_ZERO = 48;

/** Returns the bytes of 64 digits without leading zeros. */
const bytesOf = (digits: string): Uint8Array => {
  let start = 0;
  while (start < digits.length && digits.charCodeAt(start) === DIGIT_ZERO) {
    start++;
  }
  // The bytes of a Buffer would be a part of a larger one, which a message to a thread copies as a whole.
  return start === digits.length ? NOTHING : new Uint8Array(Buffer.from(digits.slice(start - (start % 2)), "hex"));
};

/** Collects values of the store, which have 64 digits of hex each, in the form that executions read. */
export class StateValuesBuilder {
  readonly #accounts: StateValues["accounts"][number][] = [];
  readonly #codes = new Map<Hash, Uint8Array>();
  readonly #slots: StateValues["slots"][number][] = [];

  get values(): StateValues {
    return { accounts: this.#accounts, codes: [...this.#codes], slots: this.#slots, blockHashes: [] };
  }

  /** Adds an account. An empty account counts as one that does not exist (EIP-161). */
  addAccount(address: Address, balance: string, nonce: string, codeHash: string): void {
    const hasCode = codeHash !== ZERO_VALUE;
    const isEmpty = !hasCode && balance === ZERO_VALUE && nonce === ZERO_VALUE;
    const account = {
      balance: BigInt(`0x${balance}`),
      nonce: BigInt(`0x${nonce}`),
      codeHash: hasCode ? (`0x${codeHash}` as const) : EMPTY_CODE_HASH,
    };
    this.#accounts.push([address, isEmpty ? undefined : account]);
  }

  addCode(codeHash: string, code: Uint8Array): void {
    if (code.length > 0) {
      this.#codes.set(`0x${codeHash}`, code);
    }
  }

  addSlot(address: Address, slot: Hash, value: string): void {
    this.#slots.push([address, slot, bytesOf(value)]);
  }
}
