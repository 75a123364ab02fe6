import { type Address, formatWord, type Hash } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { numberBytes } from "../../../src/ethereum/rlp.ts";
import type { AccountWrites, BlockWrites, Written } from "../../../src/state/writeSet.ts";

/** Random choices: see test/fuzz/engine/random.ts. */
interface Choices {
  below(limit: number): number;
  pick<T>(values: readonly T[]): T;
}

type Change = (writes: AccountWrites, choices: Choices) => AccountWrites | undefined;

const amount = (value: Written<bigint> | undefined): bigint => (typeof value === "bigint" ? value : 0n);
const withoutField = (writes: AccountWrites, field: keyof AccountWrites): AccountWrites => {
  const { [field]: _, ...rest } = writes;
  return { ...rest, slots: writes.slots };
};
const withSlot = (writes: AccountWrites, slot: Hash, value: Written<Uint8Array>): AccountWrites => ({
  ...writes,
  slots: new Map([...writes.slots, [slot, value]]),
});
const someSlot = (writes: AccountWrites, choices: Choices): Hash =>
  writes.slots.size > 0 ? choices.pick([...writes.slots.keys()]) : formatWord(choices.below(12));

/** Lies about one account, by name. Undefined: the account is left out. */
export const LIES: Readonly<Record<string, Change>> = {
  "account dropped": () => undefined,
  "balance dropped": (writes) => withoutField(writes, "balance"),
  "balance changed": (writes) => ({ ...writes, balance: amount(writes.balance) + 1n }),
  "balance zeroed": (writes) => ({ ...writes, balance: 0n }),
  "nonce dropped": (writes) => withoutField(writes, "nonce"),
  "nonce changed": (writes) => ({ ...writes, nonce: amount(writes.nonce) + 1n }),
  "code dropped": (writes) => withoutField(withoutField(writes, "code"), "codeHash"),
  "code changed": (writes) => ({ ...writes, code: Uint8Array.of(1), codeHash: keccak256Hex(Uint8Array.of(1)) }),
  "code under another hash": (writes) => ({
    ...writes,
    code: Uint8Array.of(2),
    codeHash: writes.codeHash ?? keccak256Hex(Uint8Array.of(1)),
  }),
  "slot dropped": (writes, choices) => {
    const slot = someSlot(writes, choices);
    return { ...writes, slots: new Map([...writes.slots].filter(([key]) => key !== slot)) };
  },
  "slot changed": (writes, choices) => withSlot(writes, someSlot(writes, choices), numberBytes(1 + choices.below(300))),
  "slot zeroed": (writes, choices) => withSlot(writes, someSlot(writes, choices), new Uint8Array(0)),
  "slot added": (writes, choices) =>
    withSlot(writes, formatWord(choices.below(12)), numberBytes(1 + choices.below(300))),
  "slot with leading zeros": (writes, choices) => withSlot(writes, someSlot(writes, choices), Uint8Array.of(0, 7)),
  "slot unknown": (writes, choices) => withSlot(writes, someSlot(writes, choices), "unknown"),
  "slots cleared": (writes) => ({ ...writes, otherSlots: "cleared" }),
  "slots unknown": (writes) => ({ ...writes, otherSlots: "unknown" }),
  "balance unknown": (writes) => ({ ...writes, balance: "unknown" }),
  "code unknown": (writes) => ({ ...withoutField(writes, "codeHash"), code: "unknown" }),
};

/** Returns the claim with a lie about one account, which may be one that it does not have. */
export const withLie = (claim: BlockWrites, name: string, address: Address, choices: Choices): BlockWrites => {
  const changed = LIES[name]?.(claim.get(address) ?? { slots: new Map() }, choices);
  const others = [...claim].filter(([key]) => key !== address);
  return new Map(changed === undefined ? others : [...others, [address, changed]]);
};
