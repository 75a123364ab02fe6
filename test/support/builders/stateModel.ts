import type { BlockId } from "../../../src/core/heads.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import type { AccountWrites, WriteSet, Written } from "../../../src/state/writeSet.ts";
import { hashOf } from "./heads.ts";
import { pick } from "./randomValues.ts";

const DIGITS = 64;
const ZERO = "0".repeat(DIGITS);

export const addressOf = (index: number): Address => `0x${(index + 1).toString(16).padStart(40, "a")}`;
const slotOf = (index: number): Hash => `0x${index.toString(16).padStart(DIGITS, "0")}`;

const ADDRESSES = [0, 1, 2, 3].map(addressOf);
const SLOTS = [0, 1, 2, 3, 4].map(slotOf);

/** Every key of the model. */
export const MODEL_KEYS: readonly StateKey[] = ADDRESSES.flatMap((address) => [
  ...(["balance", "nonce", "code"] as const).map((field) => ({ address, field, slot: undefined })),
  ...SLOTS.map((slot) => ({ address, field: "slot" as const, slot })),
]);

const nameOf = ({ address, field, slot }: StateKey): string => `${address}${field}${slot ?? ""}`;

/** A block with the whole state after it. */
export interface ModelBlock extends BlockId {
  readonly writeSet: WriteSet;
  readonly values: ReadonlyMap<string, string>;
  readonly codes: ReadonlyMap<string, Uint8Array>;
}

/** Returns the value after a block: 64 digits of hex, of a code its hash. */
export const modelValue = ({ values }: ModelBlock, key: StateKey): string => values.get(nameOf(key)) ?? ZERO;

interface Draft {
  readonly random: () => number;
  readonly values: Map<string, string>;
  readonly codes: Map<string, Uint8Array>;
}

const bytesOf = (value: number): Uint8Array => (value === 0 ? new Uint8Array(0) : Uint8Array.of(value));

/** Sets a random value in the draft. Returns its part of the write set. */
const writeNumber = (draft: Draft, key: StateKey): Written<bigint> => {
  const value = Math.floor(draft.random() * 200);
  draft.values.set(nameOf(key), value.toString(16).padStart(DIGITS, "0"));
  return draft.random() < 0.15 ? "unknown" : BigInt(value);
};

const writeSlot = (draft: Draft, key: StateKey): Written<Uint8Array> => {
  const written = writeNumber(draft, key);
  return written === "unknown" ? written : bytesOf(Number(written));
};

const writeCode = (draft: Draft, key: StateKey): Written<Uint8Array> => {
  const code = bytesOf(Math.floor(draft.random() * 5));
  const hash = code.length === 0 ? ZERO : keccak256Hex(code).slice(2);
  draft.codes.set(hash, code);
  draft.values.set(nameOf(key), hash);
  return draft.random() < 0.15 ? "unknown" : code;
};

/** Clears the slots of an account, or changes one slot that the write set does not list. */
const writeOtherSlots = (draft: Draft, address: Address): AccountWrites["otherSlots"] => {
  const isCleared = draft.random() < 0.7;
  for (const slot of isCleared ? SLOTS : [pick(draft.random, SLOTS)]) {
    draft.values.set(nameOf({ address, field: "slot", slot }), isCleared ? ZERO : "7".padStart(DIGITS, "0"));
  }
  return isCleared ? "cleared" : "unknown";
};

const writeAccount = (draft: Draft, address: Address): AccountWrites => {
  const happens = (share: number) => draft.random() < share;
  const key = (field: StateKey["field"], slot?: Hash): StateKey => ({ address, field, slot });
  const otherSlots = happens(0.1) ? writeOtherSlots(draft, address) : undefined;
  const slots = SLOTS.filter(() => happens(0.3)).map((slot) => [slot, writeSlot(draft, key("slot", slot))] as const);
  return {
    ...(happens(0.5) && { balance: writeNumber(draft, key("balance")) }),
    ...(happens(0.3) && { nonce: writeNumber(draft, key("nonce")) }),
    ...(happens(0.1) && { code: writeCode(draft, key("code")) }),
    ...(otherSlots && { otherSlots }),
    slots: new Map(slots),
  };
};

/** Creates the child of a block with random writes. `fork` makes hashes of several branches differ. */
export const createModelBlock = (random: () => number, parent: ModelBlock, fork: number): ModelBlock => {
  const number = parent.number + 1n;
  const id = { number, hash: hashOf(number, fork) };
  const draft: Draft = { random, values: new Map(parent.values), codes: new Map(parent.codes) };
  const written = ADDRESSES.filter(() => random() < 0.4);
  const accounts = new Map(written.map((address) => [address, writeAccount(draft, address)]));
  return {
    ...id,
    writeSet: { block: id, grade: "checked", packed: packWrites(accounts) },
    values: draft.values,
    codes: draft.codes,
  };
};

/** The first block, whose accounts have values that no write set names. */
export const firstModelBlock = (number: bigint): ModelBlock => {
  const id = { number, hash: hashOf(number) };
  const values = new Map(
    MODEL_KEYS.filter(({ field }) => field !== "code").map((key, index) => [
      nameOf(key),
      (index + 1_000).toString(16).padStart(DIGITS, "0"),
    ]),
  );
  return {
    ...id,
    writeSet: { block: id, grade: "checked", packed: packWrites(new Map()) },
    values,
    codes: new Map([[ZERO, new Uint8Array(0)]]),
  };
};
