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
export interface MissingState {
  account(address: Address): void;
  slot(address: Address, slot: Hash): void;
  blockHash(number: bigint): void;
  /** Called at every read. Throws SpeculationLimitError if the run has guessed too much. */
  check(): void;
  readonly count: number;
  keys(): StateKeys;
}

export const createMissingState = (): MissingState => {
  const keys = new StateKeySet();
  const loops = createLoopGuard();
  let reads = 0;
  return {
    account: (address) => keys.addAccount(address),
    slot: (address, slot) => {
      if (keys.hasSlot(address, slot)) {
        return;
      }
      loops.check(address, slot, keys.size === 0);
      keys.addSlot(address, slot);
    },
    blockHash: (number) => keys.addBlockHash(number),
    check: () => {
      if (keys.size === 0) {
        return;
      }
      reads++;
      if (keys.size > MAX_KEYS || reads > MAX_READS) {
        throw new SpeculationLimitError();
      }
    },
    get count() {
      return keys.size;
    },
    keys: () => keys.keys(),
  };
};

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

/** For a run that must not guess: records the first missing value and throws LacksState. */
export const createStrictState = (): MissingState => {
  const keys = new StateKeySet();
  const stop = (): never => {
    throw new LacksState("a value is not known");
  };
  return {
    account: (address) => {
      keys.addAccount(address);
      stop();
    },
    slot: (address, slot) => {
      keys.addSlot(address, slot);
      stop();
    },
    blockHash: (number) => {
      keys.addBlockHash(number);
      stop();
    },
    check: () => undefined,
    get count() {
      return keys.size;
    },
    keys: () => keys.keys(),
  };
};
