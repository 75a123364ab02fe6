import type { StateKeys, StateSource } from "../../../src/core/stateReader.ts";
import { ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { type PlainState, readerOf } from "../builders/stateRoot.ts";

export interface CountedSource extends StateSource {
  readonly reads: readonly StateKeys[];
}

/** Creates an asynchronous source of a whole state, which counts its reads. */
export const plainSource = (id: string, state: PlainState): CountedSource => {
  const reader = readerOf(state, () => ZERO_HASH);
  const reads: StateKeys[] = [];
  return {
    id,
    reads,
    read: async (keys) => {
      reads.push(keys);
      const accounts = keys.accounts.map((address) => [address, reader.account(address)] as const);
      return {
        accounts,
        codes: accounts.flatMap(([address, account]) =>
          account === undefined ? [] : [[account.codeHash, reader.code(account.codeHash, address)] as const],
        ),
        slots: keys.slots.map(([address, slot]) => [address, slot, reader.storage(address, slot)] as const),
        blockHashes: keys.blockHashes.map((number) => [number, ZERO_HASH] as const),
      };
    },
  };
};
