import { NO_VALUES, type StateKeys, type StateSource } from "../core/stateReader.ts";
import type { PendingView, WrittenAccount } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import { parentHashes } from "./messageSteps.ts";

/** Returns the keys to read from the base: values that the pending blocks did not write, and code that they did not change. */
const keysOfBase = (view: PendingView, keys: StateKeys, hashes: ReadonlyMap<bigint, Hash>): StateKeys => {
  const needsBase = (address: Address): boolean => {
    const written = view.account(address);
    return !written || (written.account !== undefined && written.code === undefined);
  };
  return {
    accounts: keys.accounts.filter(needsBase),
    slots: keys.slots.filter(([address, slot]) => view.storage(address, slot) === undefined),
    blockHashes: keys.blockHashes.filter((number) => !hashes.has(number)),
  };
};

const isEmpty = ({ accounts, slots, blockHashes }: StateKeys): boolean =>
  accounts.length + slots.length + blockHashes.length === 0;

const codeOf = (written: WrittenAccount): readonly (readonly [Hash, Uint8Array])[] =>
  written.account && written.code ? [[written.account.codeHash, written.code]] : [];

/** Returns the state after a view's pending blocks: their write sets over the state of the base block, which is read by hash. */
export const pendingState = (view: PendingView, base: StateSource): StateSource => ({
  id: `${base.id}+${view.id}`,
  read: async (keys, signal) => {
    const hashes = parentHashes(view.blocks);
    const baseKeys = keysOfBase(view, keys, hashes);
    const baseValues = isEmpty(baseKeys) ? NO_VALUES : await base.read(baseKeys, signal);
    const written = keys.accounts.flatMap((address) => {
      const account = view.account(address);
      return account ? [[address, account] as const] : [];
    });
    return {
      // The base may return more values than requested. Values that the view wrote take precedence.
      accounts: [
        ...baseValues.accounts.filter(([address]) => !view.account(address)),
        ...written.map(([address, { account }]) => [address, account] as const),
      ],
      codes: [...baseValues.codes, ...written.flatMap(([, account]) => codeOf(account))],
      slots: [
        ...baseValues.slots.filter(([address, slot]) => view.storage(address, slot) === undefined),
        ...keys.slots.flatMap(([address, slot]) => {
          const value = view.storage(address, slot);
          return value ? [[address, slot, value] as const] : [];
        }),
      ],
      blockHashes: [
        ...baseValues.blockHashes.filter(([number]) => !hashes.has(number)),
        ...keys.blockHashes.flatMap((number) => {
          const hash = hashes.get(number);
          return hash ? [[number, hash] as const] : [];
        }),
      ],
    };
  },
});
