import type { StateKeys } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { StateKeySet } from "./stateKeySet.ts";

const MAX_KEYS = 1_000;
/** Reads after the first guess. A run with more reads follows a wrong guess, and its keys are not useful. */
const MAX_READS = 5_000;
/** Consecutive slots that a run on guesses may read. More of them are a loop over a guessed length. */
const MAX_CONSECUTIVE = 16;

/** Stops a run that has guessed too much. The keys that it recorded before are fetched. */
class SpeculationLimitError extends Error {
  override readonly name = "SpeculationLimitError";
}

/** Stops a run at its first missing value. */
class LacksState extends Error {
  override readonly name = "LacksState";
}

/** Records the values that a run read and that were not cached. */
export class MissingState {
  readonly #keys = new StateKeySet();
  readonly #loops = createLoopGuard();
  #reads = 0;

  get count(): number {
    return this.#keys.size;
  }

  account(address: Address): void {
    this.#keys.addAccount(address);
  }

  slot(address: Address, slot: Hash): void {
    if (this.#keys.hasSlot(address, slot)) {
      return;
    }
    this.#loops.check(address, slot, this.#keys.size === 0);
    this.#keys.addSlot(address, slot);
  }

  blockHash(number: bigint): void {
    this.#keys.addBlockHash(number);
  }

  /** Called at every read. Throws SpeculationLimitError if the run has guessed too much. */
  check(): void {
    if (this.#keys.size === 0) {
      return;
    }
    this.#reads++;
    if (this.#keys.size > MAX_KEYS || this.#reads > MAX_READS) {
      throw new SpeculationLimitError();
    }
  }

  keys(): StateKeys {
    return this.#keys.keys();
  }
}

/** For a run that must not guess: records the first missing value and throws LacksState. */
export class FirstMissing extends MissingState {
  override account(address: Address): void {
    super.account(address);
    throw new LacksState(address);
  }

  override slot(address: Address, slot: Hash): void {
    super.slot(address, slot);
    throw new LacksState(address);
  }

  override blockHash(number: bigint): void {
    super.blockHash(number);
    throw new LacksState(String(number));
  }
}

/** Throws SpeculationLimitError in a loop over consecutive slots that started after a guess. */
const createLoopGuard = () => {
  let last: { readonly address: Address; readonly slot: bigint } | undefined;
  let length = 0;
  let isExempt = false;
  return {
    check: (address: Address, hash: Hash, isFirst: boolean): void => {
      const slot = BigInt(hash);
      const continues = last?.address === address && last.slot + 1n === slot;
      if (!continues) {
        isExempt = isFirst;
      }
      length = continues ? length + 1 : 1;
      last = { address, slot };
      if (length > MAX_CONSECUTIVE && !isExempt) {
        throw new SpeculationLimitError();
      }
    },
  };
};
