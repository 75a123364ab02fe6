import type { StateKeys, StateSource, StateValues } from "../core/stateReader.ts";
import type { PendingView, WrittenAccount } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";

/** The hashes of blocks that pending ones stand on: each is said by the block above it. */
const parentHashes = ({ blocks }: PendingView): ReadonlyMap<bigint, Hash> =>
  new Map(blocks.map(({ environment }) => [environment.number - 1n, environment.parentHash]));

/** What is asked of the base: all that the pending blocks did not write, and the code of what they wrote to without changing it. */
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

const NOTHING: StateValues = { accounts: [], codes: [], slots: [], blockHashes: [] };

const codeOf = (written: WrittenAccount): readonly (readonly [Hash, Uint8Array])[] =>
  written.account && written.code ? [[written.account.codeHash, written.code]] : [];

/** State after a view's pending blocks, for whoever runs on it: what they wrote, over the state at their base (by its hash). */
export const pendingState = (view: PendingView, base: StateSource): StateSource => ({
  id: `${base.id}+${view.id}`,
  read: async (keys, signal) => {
    const hashes = parentHashes(view);
    const asked = keysOfBase(view, keys, hashes);
    const below = isEmpty(asked) ? NOTHING : await base.read(asked, signal);
    const written = keys.accounts.flatMap((address) => {
      const account = view.account(address);
      return account ? [[address, account] as const] : [];
    });
    return {
      // The base may tell more than it was asked for; what the view wrote is never its to tell.
      accounts: [
        ...below.accounts.filter(([address]) => !view.account(address)),
        ...written.map(([address, { account }]) => [address, account] as const),
      ],
      codes: [...below.codes, ...written.flatMap(([, account]) => codeOf(account))],
      slots: [
        ...below.slots.filter(([address, slot]) => view.storage(address, slot) === undefined),
        ...keys.slots.flatMap(([address, slot]) => {
          const value = view.storage(address, slot);
          return value ? [[address, slot, value] as const] : [];
        }),
      ],
      blockHashes: [
        ...below.blockHashes.filter(([number]) => !hashes.has(number)),
        ...keys.blockHashes.flatMap((number) => {
          const hash = hashes.get(number);
          return hash ? [[number, hash] as const] : [];
        }),
      ],
    };
  },
});
