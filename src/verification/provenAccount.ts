import type { Hash } from "../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../ethereum/keccak.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import { slotOfKey } from "./accountProof.ts";

/** The values of a proof, as its fields have them. */
export interface ProofValues {
  readonly balance: bigint;
  readonly nonce: bigint;
  /** Of no code: the hash of no bytes. */
  readonly codeHash: Hash;
  /** Returns the value of a slot that was requested. */
  slot(slot: Hash): bigint;
}

/** Some nodes write zero as `0x`. */
const numberIn = (field: unknown): bigint =>
  typeof field === "number" || (typeof field === "string" && field !== "0x") ? BigInt(field) : 0n;

const codeHashIn = (codeHash: unknown): Hash =>
  typeof codeHash !== "string" || /^0x0*$/.test(codeHash) ? EMPTY_CODE_HASH : `0x${codeHash.slice(2).toLowerCase()}`;

/**
 * Reads the values of a response to eth_getProof that passed `checkProof`, which has compared the fields with the proof. Nodes may
 * return the slots in another order than requested, and none for an absent account: all its slots are zero.
 */
export const readProvenAccount = ({ balance, nonce, codeHash, storageProof }: Fields): ProofValues => {
  const items: readonly unknown[] = Array.isArray(storageProof) ? storageProof : [];
  const slots = new Map(
    items.flatMap((item) => (isFields(item) ? [[slotOfKey(item.key), numberIn(item.value)] as const] : [])),
  );
  return {
    ...{ balance: numberIn(balance), nonce: numberIn(nonce), codeHash: codeHashIn(codeHash) },
    slot: (slot) => {
      const value = slots.size === 0 ? 0n : slots.get(slot);
      if (value === undefined) {
        throw new RangeError(`the proof has no slot ${slot}`);
      }
      return value;
    },
  };
};
