import { type Data, formatData, type Hash, parseData } from "../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256 } from "../ethereum/keccak.ts";
import { EMPTY_ROOT } from "../ethereum/trieEncoding.ts";
import { decodeString, decodeStrings, WrongProof } from "../ethereum/trieNode.ts";
import { TrieProofs } from "../ethereum/trieProof.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { dataOf, fieldsOf, isAbsent, listOf, MalformedField } from "./jsonFields.ts";

/** The account that a proof is requested for. */
export interface ProofRequest {
  /** Of the block's header. */
  readonly stateRoot: Data;
  readonly address: Data;
  /** Slots in any form: short or padded, with or without `0x`. */
  readonly keys: readonly string[];
}

/** What the state root commits to. */
export interface ProvenAccount {
  /** False: the account does not exist. */
  readonly exists: boolean;
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly storageHash: Hash;
  readonly codeHash: Hash;
}

/** One item of `storageProof`, as a node returned it, with the value that its nodes prove. */
export interface ProvenSlot {
  readonly fields: Fields;
  readonly value: bigint;
}

interface ProvenState {
  readonly account: ProvenAccount;
  /** In the order of the response. */
  readonly slots: readonly ProvenSlot[];
}

/** The root proves an account whose encoding forebay does not know, as of a chain with further fields. */
export class UnknownAccount extends Error {
  override readonly name = "UnknownAccount";
}

export const EMPTY_STORAGE_HASH: Hash = formatData(EMPTY_ROOT);
export const NO_ACCOUNT: ProvenAccount = {
  ...{ exists: false, nonce: 0n, balance: 0n },
  ...{ storageHash: EMPTY_STORAGE_HASH, codeHash: EMPTY_CODE_HASH },
};

const SLOT_DIGITS = 64;

/** Returns a slot as 32 bytes. Nodes return the key as it was sent, shortened, padded, or without `0x`. */
export const slotOfKey = (key: unknown): Hash => {
  const digits = typeof key === "string" ? key.replace(/^0x/i, "").toLowerCase() : undefined;
  if (digits === undefined || digits.length > SLOT_DIGITS || !/^[0-9a-f]*$/.test(digits)) {
    throw new MalformedField("expected a storage slot");
  }
  return `0x${digits.padStart(SLOT_DIGITS, "0")}`;
};

const MAX_NUMBER_BYTES = 32;

/** A number in a trie has no leading zeros. */
const numberIn = (bytes: Uint8Array): bigint => {
  if (bytes.length > MAX_NUMBER_BYTES || bytes[0] === 0) {
    throw new WrongProof("not a number");
  }
  return bytes.length === 0 ? 0n : BigInt(formatData(bytes));
};

const hashIn = (bytes: Uint8Array | undefined): Hash => {
  if (bytes?.length !== 32) {
    throw new WrongProof("not a hash");
  }
  return formatData(bytes);
};

/** Parses the leaf of an account. Throws UnknownAccount. */
export const parseAccount = (leaf: Uint8Array): ProvenAccount => {
  try {
    const [nonce, balance, storageHash, codeHash, ...more] = decodeStrings(leaf);
    if (nonce === undefined || balance === undefined || more.length > 0) {
      throw new WrongProof("not an account");
    }
    return {
      ...{ exists: true, nonce: numberIn(nonce), balance: numberIn(balance) },
      ...{ storageHash: hashIn(storageHash), codeHash: hashIn(codeHash) },
    };
  } catch (error) {
    if (error instanceof WrongProof) {
      throw new UnknownAccount("the root proves an account of another form", { cause: error });
    }
    throw error;
  }
};

const parseSlotValue = (leaf: Uint8Array): bigint => {
  const value = numberIn(decodeString(leaf));
  if (value === 0n) {
    throw new WrongProof("a zero in a trie");
  }
  return value;
};

/** Some nodes return `null` instead of an empty list. */
const nodesOf = (proof: unknown): readonly Data[] => (isAbsent(proof) ? [] : listOf(proof).map(dataOf));

/**
 * Besu sorts the slots and returns each once, and before August 2026 none for an absent account. So each item is matched by its key,
 * and an absent account proves all slots.
 */
const requireSlots = (asked: readonly string[], answered: readonly Hash[], { exists }: ProvenAccount): void => {
  const wanted = new Set(asked.map(slotOfKey));
  const found = new Set(answered);
  const isComplete = found.size === wanted.size || (!exists && found.size === 0);
  if (answered.length > asked.length || !isComplete || !answered.every((slot) => wanted.has(slot))) {
    throw new WrongProof("other slots than requested");
  }
};

/**
 * Returns what a response to eth_getProof (EIP-1186) proves. All values are taken out of the nodes of the trie: the fields beside
 * them are not read, except the keys. Throws WrongProof, MalformedField, or UnknownAccount.
 */
export const verifyProof = ({ stateRoot, address, keys }: ProofRequest, response: Fields): ProvenState => {
  const proofs = new TrieProofs();
  const leaf = proofs.read(parseData(stateRoot), keccak256(parseData(address)), nodesOf(response.accountProof));
  const account = leaf === undefined ? NO_ACCOUNT : parseAccount(leaf);
  const storageRoot = parseData(account.storageHash);
  const items = isAbsent(response.storageProof) ? [] : listOf(response.storageProof).map(fieldsOf);
  const answered = items.map(({ key }) => slotOfKey(key));
  requireSlots(keys, answered, account);
  const slots = items.map((fields, index): ProvenSlot => {
    const key = keccak256(parseData(answered[index] ?? "0x"));
    const value = proofs.read(storageRoot, key, nodesOf(fields.proof));
    return { fields, value: value === undefined ? 0n : parseSlotValue(value) };
  });
  return { account, slots };
};
