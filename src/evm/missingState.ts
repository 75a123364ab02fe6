import type { Address, Hash } from "../chain/hex.ts";
import type { StateKeys } from "../chain/stateReader.ts";

const MAX_KEYS = 1_000;
/** A guess led a run astray for so long: what it asks for now is not worth having. */
const MAX_GUESSING_MS = 20;

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
  let since: number | undefined;
  const note = () => {
    since ??= performance.now();
  };
  const count = () => accounts.size + slots.size + blockHashes.size;
  return {
    account: (address) => {
      accounts.add(address);
      note();
    },
    slot: (address, slot) => {
      slots.set(address + slot, [address, slot]);
      note();
    },
    blockHash: (number) => {
      blockHashes.add(number);
      note();
    },
    check: () => {
      if (since === undefined) return;
      if (count() > MAX_KEYS || performance.now() - since > MAX_GUESSING_MS) throw new GuessedEnough();
    },
    get count() {
      return count();
    },
    keys: () => ({ accounts: [...accounts], slots: [...slots.values()], blockHashes: [...blockHashes] }),
  };
};
