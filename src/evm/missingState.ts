import type { Address, Hash } from "../chain/hex.ts";
import type { StateKeys } from "../chain/stateReader.ts";

const MAX_KEYS = 1_000;
/** Reads after the first guess: a run that goes on for longer was led astray, and what it asks for is not worth having. */
const MAX_READS = 5_000;

/** Stops a run that has guessed enough; what it lacked until then is asked for. */
class GuessedEnough extends Error {
  override readonly name = "GuessedEnough";
}

/** What a run asked for and was not there. */
export interface MissingState {
  account(address: Address): void;
  slot(address: Address, slot: Hash): void;
  blockHash(number: bigint): void;
  /** Called at every read. */
  check(): void;
  readonly count: number;
  keys(): StateKeys;
}

export const createMissingState = (): MissingState => {
  const accounts = new Set<Address>();
  const slots = new Map<string, readonly [Address, Hash]>();
  const blockHashes = new Set<bigint>();
  let reads = 0;
  const count = () => accounts.size + slots.size + blockHashes.size;
  return {
    account: (address) => {
      accounts.add(address);
    },
    slot: (address, slot) => {
      slots.set(address + slot, [address, slot]);
    },
    blockHash: (number) => {
      blockHashes.add(number);
    },
    check: () => {
      if (count() === 0) return;
      reads++;
      if (count() > MAX_KEYS || reads > MAX_READS) throw new GuessedEnough();
    },
    get count() {
      return count();
    },
    keys: () => ({ accounts: [...accounts], slots: [...slots.values()], blockHashes: [...blockHashes] }),
  };
};
