import type { BlockId } from "../../core/heads.ts";
import type { StateKeys, StateSource, StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { accountKey, accountKeys, keyName, type StateKey, slotKey } from "../stateKey.ts";
import { StateValuesBuilder } from "../store/stateValuesBuilder.ts";
import type { ValueStore } from "../store/valueStore.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";
import type { CallReads } from "./callResult.ts";

export interface RunStateOptions {
  readonly values: Pick<ValueStore, "get" | "code" | "hasProof">;
  /** Returns the hash of an ancestor of a block. Undefined if the block is not canonical any more. */
  ancestorHash(number: bigint, block: BlockId): Hash | undefined;
}

const NOT_SENT = new Uint8Array(0);

/** How a run got a value. A guess is zero. */
type Origin = "proven" | "stated" | "guessed";

/** The state of one run, from known values alone. A balance or a nonce that is not known is zero for the run. */
export class RunState implements StateSource {
  readonly id: string;
  readonly expected: StateValues | undefined;
  /** The values for which the run ended. */
  missing: readonly StateKey[] | undefined;
  readonly #options: RunStateOptions;
  readonly #block: BlockId;
  /** The worst origin of each value that the run got, by the name of its key. */
  readonly #origins = new Map<string, Origin>();
  /** Accounts that the run got as empty. */
  readonly #empty = new Set<Address>();
  /** A thread has most codes. It requests an account again if it lacks the code. */
  readonly #sent = new Set<Address>();

  /** The known values of `expected` are sent with the run. */
  constructor(options: RunStateOptions, block: BlockId, expected?: StateKeys) {
    this.id = `known:${block.hash}`;
    this.#options = options;
    this.#block = block;
    this.expected = expected && this.#find(expected, []);
  }

  async read(keys: StateKeys): Promise<StateValues> {
    const missing: StateKey[] = [];
    const found = this.#find(keys, missing);
    const blockHashes = keys.blockHashes.flatMap((number) => {
      const hash = this.#options.ancestorHash(number, this.#block);
      return hash === undefined ? [] : [[number, hash] as const];
    });
    if (missing.length > 0 || blockHashes.length < keys.blockHashes.length) {
      this.missing = missing;
      throw new Error(`${missing.length} values are not known`);
    }
    return { ...found, blockHashes };
  }

  /** Returns the keys whose values were guesses. If the run read one, its result is worthless. */
  guessesAmong({ keys, emptiness }: CallReads): readonly StateKey[] {
    const parts = emptiness.filter((address) => this.#empty.has(address)).flatMap(accountKeys);
    return [...keys, ...parts].filter((key) => this.#origins.get(keyName(key)) === "guessed");
  }

  /** Returns those of these keys for which the run did not get a proven value. */
  withoutProof(keys: readonly StateKey[]): readonly StateKey[] {
    return keys.filter((key) => this.#origins.get(keyName(key)) !== "proven");
  }

  #get(key: StateKey): string | undefined {
    const { values } = this.#options;
    const value = values.get(key, this.#block);
    if (value !== undefined) {
      this.#note(key, values.hasProof(key, this.#block) ? "proven" : "stated");
    }
    return value;
  }

  #note(key: StateKey, origin: Origin): void {
    const name = keyName(key);
    const before = this.#origins.get(name);
    if (before === undefined || before === "proven" || origin === "guessed") {
      this.#origins.set(name, origin);
    }
  }

  #getOrGuess(key: StateKey): string {
    const value = this.#get(key);
    if (value === undefined) {
      this.#note(key, "guessed");
    }
    return value ?? ZERO_VALUE;
  }

  #find({ accounts, slots }: StateKeys, missing: StateKey[]): StateValues {
    const found = new StateValuesBuilder();
    for (const address of accounts) {
      this.#findAccount(address, found, missing);
    }
    for (const [address, slot] of slots) {
      const key = slotKey(address, slot);
      const value = this.#get(key);
      if (value === undefined) {
        missing.push(key);
      } else {
        found.addSlot(address, slot, value);
      }
    }
    return found.values;
  }

  #findAccount(address: Address, found: StateValuesBuilder, missing: StateKey[]): void {
    const codeKey = accountKey(address, "code");
    const codeHash = this.#get(codeKey);
    const needsCode = codeHash !== undefined && this.#sent.has(address);
    const code = needsCode ? this.#options.values.code(codeHash) : NOT_SENT;
    if (codeHash === undefined || code === undefined) {
      missing.push(codeKey);
      return;
    }
    this.#sent.add(address);
    const balance = this.#getOrGuess(accountKey(address, "balance"));
    const nonce = this.#getOrGuess(accountKey(address, "nonce"));
    if ([codeHash, balance, nonce].every((value) => value === ZERO_VALUE)) {
      this.#empty.add(address);
    }
    found.addAccount(address, balance, nonce, codeHash);
    found.addCode(codeHash, code);
  }
}
