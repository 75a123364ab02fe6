import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import type { AccountWrites, BlockWrites, Written } from "../../../src/state/writeSet.ts";

/** The state of an account, as a node returns it. Values are quantities and hashes without leading zeros in slots. */
export interface AccountTruth {
  readonly balance: string;
  readonly nonce: string;
  readonly codeHash: Hash;
  readonly slots: Readonly<Record<Hash, string>>;
}

/** The values of many keys at one block. */
export type StateTruth = Readonly<Record<Address, AccountTruth>>;

type CallAll = (method: string, params: readonly (readonly unknown[])[]) => Promise<unknown[]>;

interface Proof {
  readonly balance: string;
  readonly nonce: string;
  readonly codeHash: Hash;
  readonly storageProof: readonly { readonly key: string; readonly value: string }[];
}

const EMPTY_CODE_HASH = keccak256Hex(new Uint8Array(0));
const ZERO = /^0x0*$/;

/** Reads the keys at a block. Balance, nonce and code hash are those of eth_getProof, slots too. */
export const readTruth = async (
  callAll: CallAll,
  keys: ReadonlyMap<Address, readonly Hash[]>,
  block: string,
): Promise<StateTruth> => {
  const entries = [...keys];
  const proofs = (await callAll(
    "eth_getProof",
    entries.map(([address, slots]) => [address, slots, block]),
  )) as Proof[];
  return Object.fromEntries(
    proofs.map(({ balance, nonce, codeHash, storageProof }, at) => [
      entries[at]?.[0],
      {
        balance,
        nonce,
        codeHash: ZERO.test(codeHash) ? EMPTY_CODE_HASH : codeHash,
        slots: Object.fromEntries(storageProof.map(({ value }, index) => [entries[at]?.[1][index], value])),
      },
    ]),
  );
};

/** The outcome of a comparison: keys with a wrong value, keys whose write is missing, and counts. */
export interface TruthComparison {
  readonly wrong: readonly string[];
  readonly missed: readonly string[];
  readonly compared: number;
  readonly unknown: number;
}

const bigintOf = (bytes: Uint8Array): bigint => (bytes.length === 0 ? 0n : BigInt(`0x${bytes.toHex()}`));

/** The written value of a slot; undefined if the slot was not written. */
const slotOf = ({ slots, otherSlots }: AccountWrites, slot: Hash): Written<bigint> | undefined => {
  const value = slots.get(slot);
  if (value !== undefined) {
    return value === "unknown" ? value : bigintOf(value);
  }
  return otherSlots === "cleared" ? 0n : otherSlots;
};

const codeHashOf = ({ code, codeHash }: AccountWrites): Written<bigint> | undefined => {
  if (codeHash !== undefined) {
    return BigInt(codeHash);
  }
  return code === undefined || code === "unknown" ? code : BigInt(keccak256Hex(code));
};

/** Holds the writes of a block against the state before and after its block. */
export const compareTruth = (accounts: BlockWrites, before: StateTruth, after: StateTruth): TruthComparison => {
  const wrong: string[] = [];
  const missed: string[] = [];
  let compared = 0;
  let unknown = 0;
  const check = (key: string, written: Written<bigint> | undefined, values: readonly (string | undefined)[]): void => {
    const [old, now] = values.map((value) => BigInt(value ?? 0));
    compared++;
    if (written === "unknown") {
      unknown++;
    } else if (written !== undefined && written !== now) {
      wrong.push(`${key}: ${written} instead of ${now}`);
    } else if (written === undefined && old !== now) {
      missed.push(`${key}: ${old} became ${now}`);
    }
  };
  for (const [address, now] of Object.entries(after)) {
    const old = before[address as Address];
    const writes: AccountWrites = accounts.get(address as Address) ?? { slots: new Map() };
    check(`balance of ${address}`, writes.balance, [old?.balance, now.balance]);
    check(`nonce of ${address}`, writes.nonce, [old?.nonce, now.nonce]);
    check(`code of ${address}`, codeHashOf(writes), [old?.codeHash, now.codeHash]);
    for (const [slot, value] of Object.entries(now.slots)) {
      check(`${slot} of ${address}`, slotOf(writes, slot as Hash), [old?.slots[slot as Hash], value]);
    }
  }
  return { wrong, missed, compared, unknown };
};
