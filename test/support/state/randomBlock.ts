import type { Address } from "viem";
import type { ActorSigner, ActorStep, ActorTransaction } from "./actor.ts";

export interface RandomBlockOptions {
  readonly seed: number;
  readonly signer: Pick<ActorSigner, "accounts" | "encodeSet" | "actor">;
  /** The Store of each salt, which may or may not exist. */
  readonly targets: readonly Address[];
  /** The number of slots that are written. */
  readonly slots: number;
  /** Whether accounts can delegate (EIP-7702). */
  readonly isPrague: boolean;
}

const MAX_TRANSACTIONS = 8;
const MAX_STEPS = 4;
const MAX_VALUE = 3;

/** Returns a generator of integers below a limit (mulberry32). */
const randomBelow = (seed: number): ((limit: number) => number) => {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
};

/** Accounts that sign authorizations and send nothing. A pool would hold back their transactions until the nonce is right. */
const AUTHORITIES = 2;

/**
 * Returns the transactions of one block: transfers, slots that are set and cleared, delegations that are set and cleared.
 * Accounts are created, destroyed, funded and created again. Equal seeds give equal blocks.
 */
export const randomBlock = ({ seed, signer, targets, slots, isPrague }: RandomBlockOptions): ActorTransaction[] => {
  const below = randomBelow(seed);
  const addresses = signer.accounts.map(({ address }) => address);
  const senders = addresses.length - AUTHORITIES;
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;

  const step = (): ActorStep => {
    switch (below(5)) {
      case 0:
        return { kind: "create", salt: below(targets.length) };
      case 1:
        return { kind: "set", target: pick(targets), slot: below(slots), value: below(MAX_VALUE) };
      case 2:
        return { kind: "end", target: pick(targets), beneficiary: pick([...targets, ...addresses]) };
      case 3:
        return { kind: "endUndone", target: pick(targets) };
      default:
        return { kind: "fund", target: pick([...targets, ...addresses]), value: below(1_000) };
    }
  };

  const transaction = (): ActorTransaction => {
    const from = below(senders);
    const kind = below(isPrague ? 8 : 6);
    if (kind === 0) {
      return { kind: "call", from, to: pick([...addresses, ...targets]), value: BigInt(below(1_000)) };
    }
    if (kind === 6) {
      return { kind: "delegate", from, authority: senders + below(AUTHORITIES), to: pick([undefined, ...targets]) };
    }
    if (kind === 7) {
      const data = signer.encodeSet(below(slots), below(MAX_VALUE));
      return { kind: "call", from, to: pick(addresses), value: 0n, data };
    }
    return {
      kind: "steps",
      from,
      steps: Array.from({ length: 1 + below(MAX_STEPS) }, step),
      isUndone: below(8) === 0,
    };
  };

  return Array.from({ length: below(MAX_TRANSACTIONS + 1) }, transaction);
};
