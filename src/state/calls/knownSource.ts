import type { BlockId } from "../../core/heads.ts";
import type { ReadSet } from "../../core/readSet.ts";
import type { AccountState, StateKeys, StateSource, StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { stripZeros } from "../../ethereum/rlp.ts";
import type { StateKey } from "../stateKey.ts";
import { accountOfValues } from "../store/accountOfValues.ts";
import type { ValueStore } from "../store/valueStore.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";
import { MissingValuesError } from "./missingValuesError.ts";

/** The state and the block hashes that need no node. */
export interface KnownValues {
  readonly values: Pick<ValueStore, "get" | "code">;
  /** Returns the hash of an ancestor of a block. Undefined if the block is not canonical any more. */
  ancestorHash(number: bigint, block: BlockId): Hash | undefined;
}

type GuessedField = "balance" | "nonce";

/** Keys that a run probably reads. Their known values are sent with the run. */
export interface ExpectedReads {
  readonly accounts: readonly Address[];
  readonly slots: readonly (readonly [Address, Hash])[];
}

const keyOf = (address: Address, field: StateKey["field"]): StateKey => ({ field, address, slot: undefined });
const bytesOf = (value: string): Uint8Array => stripZeros(new Uint8Array(Buffer.from(value, "hex")));

/**
 * The state of one run, from known values alone. `read` rejects with MissingValuesError if a value is not known. A balance or
 * a nonce that is not known is zero for the run: after the run, `guessedReads` returns those that it read.
 */
export class KnownSource implements StateSource {
  readonly id: string;
  readonly #values: Pick<ValueStore, "get" | "code">;
  readonly #hashOf: KnownValues["ancestorHash"];
  readonly #block: BlockId;
  readonly expected: StateValues | undefined;
  readonly #guessed = new Map<Address, Set<GuessedField>>();
  /** Accounts that are empty only because of a guess. */
  readonly #guessedEmpty = new Set<Address>();
  /** A thread has most codes. It requests an account again if it lacks the code. */
  readonly #sent = new Set<Address>();

  constructor(state: KnownValues, block: BlockId, expected: ExpectedReads | undefined) {
    this.id = `known:${block.hash}`;
    this.#values = state.values;
    this.#hashOf = state.ancestorHash;
    this.#block = block;
    this.expected = expected && this.#findExpected(expected);
  }

  async read({ accounts, slots, blockHashes }: StateKeys): Promise<StateValues> {
    const missing: StateKey[] = [];
    const found: Found = { accounts: [], codes: [], slots: [] };
    for (const address of accounts) {
      this.#findAccount(address, found, missing);
    }
    for (const [address, slot] of slots) {
      this.#findSlot(address, slot, found, missing);
    }
    const hashes = blockHashes.flatMap((number) => {
      const hash = this.#hashOf(number, this.#block);
      return hash === undefined ? [] : [[number, hash] as const];
    });
    if (missing.length > 0 || hashes.length < blockHashes.length) {
      throw new MissingValuesError(missing);
    }
    return { ...found, blockHashes: hashes };
  }

  /** Returns the keys that a run read and that were guesses. If there is one, the result is worthless. */
  guessedReads({ accounts }: ReadSet): readonly StateKey[] {
    return accounts.flatMap(({ address, fields }) => {
      const guessed = [...(this.#guessed.get(address) ?? [])];
      const hasReadGuess = fields.includes("emptiness") && this.#guessedEmpty.has(address);
      return guessed.filter((field) => fields.includes(field) || hasReadGuess).map((field) => keyOf(address, field));
    });
  }

  #get(key: StateKey): string | undefined {
    return this.#values.get(key, this.#block);
  }

  #findAccount(address: Address, found: Found, missing: StateKey[]): void {
    const codeKey = keyOf(address, "code");
    const codeHash = this.#get(codeKey);
    if (codeHash === undefined) {
      missing.push(codeKey);
      return;
    }
    if (this.#sent.has(address) && codeHash !== ZERO_VALUE) {
      const code = this.#values.code(codeHash);
      if (code === undefined) {
        missing.push(codeKey);
        return;
      }
      found.codes.push([`0x${codeHash}`, code]);
    }
    this.#sent.add(address);
    found.accounts.push([address, this.#accountOf(address, codeHash)]);
  }

  #accountOf(address: Address, codeHash: string): AccountState | undefined {
    const balance = this.#numberOf(address, "balance");
    const nonce = this.#numberOf(address, "nonce");
    const hasCode = codeHash !== ZERO_VALUE;
    if (!hasCode && balance === 0n && nonce === 0n && this.#guessed.has(address)) {
      this.#guessedEmpty.add(address);
    }
    return accountOfValues({ balance, nonce, codeHash });
  }

  #numberOf(address: Address, field: GuessedField): bigint {
    const value = this.#get(keyOf(address, field));
    if (value !== undefined) {
      return BigInt(`0x${value}`);
    }
    const guessed = this.#guessed.get(address) ?? new Set();
    this.#guessed.set(address, guessed.add(field));
    return 0n;
  }

  #findSlot(address: Address, slot: Hash, found: Found, missing: StateKey[]): void {
    const key: StateKey = { field: "slot", address, slot };
    const value = this.#get(key);
    if (value === undefined) {
      missing.push(key);
    } else {
      found.slots.push([address, slot, bytesOf(value)]);
    }
  }

  /** Values that are not known are left to the run, which may not read them. */
  #findExpected({ accounts, slots }: ExpectedReads): StateValues {
    const found: Found = { accounts: [], codes: [], slots: [] };
    for (const address of accounts) {
      this.#findAccount(address, found, []);
    }
    for (const [address, slot] of slots) {
      this.#findSlot(address, slot, found, []);
    }
    return { ...found, blockHashes: [] };
  }
}

interface Found {
  readonly accounts: (readonly [Address, AccountState | undefined])[];
  readonly codes: (readonly [Hash, Uint8Array])[];
  readonly slots: (readonly [Address, Hash, Uint8Array])[];
}
