import type { Hash } from "../ethereum/hex.ts";
import { isHash, isQuantity } from "../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../ethereum/keccak.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import type { StateKey } from "./stateKey.ts";

/** Slots in one call; geth allows 1,024. */
const MAX_SLOTS = 500;
const DIGITS = 64;
const NO_CODE = "0".repeat(DIGITS);

/** One eth_getProof and the keys of one account that it reads. */
export interface ProofCall {
  readonly call: Call;
  readonly keys: readonly StateKey[];
}

/** Creates calls that read the values of accounts and slots. */
export const proofCalls = (keys: readonly StateKey[], block: Hash): readonly ProofCall[] =>
  [...Map.groupBy(keys, ({ address }) => address)].flatMap(([address, own]) =>
    Array.from({ length: Math.ceil(own.length / MAX_SLOTS) }, (_, index) => {
      const part = own.slice(index * MAX_SLOTS, (index + 1) * MAX_SLOTS);
      const slots = part.flatMap(({ slot }) => slot ?? []);
      return { call: createCall("eth_getProof", [address, slots, { blockHash: block }]), keys: part };
    }),
  );

const digitsOf = (value: unknown): string | undefined =>
  isQuantity(value) && value.length <= 2 + DIGITS ? value.slice(2).toLowerCase().padStart(DIGITS, "0") : undefined;

const codeOf = (value: unknown): string | undefined => {
  if (!isHash(value)) {
    return undefined;
  }
  // Some nodes return zero for an account that does not exist.
  return value.toLowerCase() === EMPTY_CODE_HASH ? NO_CODE : value.slice(2).toLowerCase();
};

/** Parses a result. Returns undefined if it has another form. */
export const parseProof = ({ keys }: ProofCall, result: unknown): ReadonlyMap<StateKey, string> | undefined => {
  if (typeof result !== "object" || result === null) {
    return undefined;
  }
  const { balance, nonce, codeHash, storageProof } = result as Readonly<Record<string, unknown>>;
  const proofs: readonly unknown[] = Array.isArray(storageProof) ? storageProof : [];
  const values = new Map<StateKey, string>();
  let slots = 0;
  for (const key of keys) {
    const value =
      key.field === "slot"
        ? digitsOf((proofs[slots++] as { readonly value?: unknown } | undefined)?.value)
        : { balance: digitsOf(balance), nonce: digitsOf(nonce), code: codeOf(codeHash) }[key.field];
    if (value === undefined) {
      return undefined;
    }
    values.set(key, value);
  }
  return values;
};
