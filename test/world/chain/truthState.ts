import type { Address, Data, Hash } from "../../../src/ethereum/hex.ts";
import { ZERO_WORD } from "../state/stateKeys.ts";
import { EMITTER, EMITTER_CODE } from "./emitter.ts";
import type { BlockState } from "./sealedBlock.ts";

export interface StateChange {
  readonly sender: Address;
  readonly feeRecipient: Address;
  readonly fee: bigint;
  readonly tip: bigint;
  readonly word: Hash;
}

const add = (values: ReadonlyMap<Address, bigint>, address: Address, amount: bigint): Map<Address, bigint> =>
  new Map(values).set(address, (values.get(address) ?? 0n) + amount);

/** The state after some transactions. It never changes. */
export class TruthState implements BlockState {
  /** Slot 0 of the emitter. */
  readonly word: Hash;
  readonly #balances: ReadonlyMap<Address, bigint>;
  readonly #nonces: ReadonlyMap<Address, bigint>;

  constructor(word: Hash, balances: ReadonlyMap<Address, bigint>, nonces: ReadonlyMap<Address, bigint> = new Map()) {
    this.word = word;
    this.#balances = balances;
    this.#nonces = nonces;
  }

  balance(address: Address): bigint {
    return this.#balances.get(address) ?? 0n;
  }

  nonce(address: Address): bigint {
    return this.#nonces.get(address) ?? 0n;
  }

  code(address: Address): Data {
    return address === EMITTER ? EMITTER_CODE : "0x";
  }

  slot(address: Address, slot: Hash): Hash {
    return address === EMITTER && slot === ZERO_WORD ? this.word : ZERO_WORD;
  }

  /** Returns the state after one more transaction. */
  after({ sender, feeRecipient, fee, tip, word }: StateChange): TruthState {
    const balances = add(add(this.#balances, sender, -fee), feeRecipient, tip);
    return new TruthState(word, balances, add(this.#nonces, sender, 1n));
  }
}
