import type { Address, Hash } from "../../../src/ethereum/hex.ts";

/** The state after some transactions. */
export interface TruthState {
  readonly nonces: ReadonlyMap<Address, bigint>;
  readonly balances: ReadonlyMap<Address, bigint>;
  /** Slot 0 of the emitter. */
  readonly slot: Hash;
}

export interface StateChange {
  readonly sender: Address;
  readonly feeRecipient: Address;
  readonly fee: bigint;
  readonly tip: bigint;
  readonly slot: Hash;
}

const add = (values: ReadonlyMap<Address, bigint>, address: Address, amount: bigint): Map<Address, bigint> =>
  new Map(values).set(address, (values.get(address) ?? 0n) + amount);

export const applyChange = (state: TruthState, { sender, feeRecipient, fee, tip, slot }: StateChange): TruthState => ({
  nonces: add(state.nonces, sender, 1n),
  balances: add(add(state.balances, sender, -fee), feeRecipient, tip),
  slot,
});
