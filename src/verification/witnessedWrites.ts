import { type Address, type Data, formatData, type Hash, parseData } from "../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256 } from "../ethereum/keccak.ts";
import { MissingNode, PartialTrie, TrieNodes } from "../ethereum/partialTrie.ts";
import { encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { WrongProof } from "../ethereum/trieNode.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { EMPTY_STORAGE_HASH, NO_ACCOUNT, type ProvenAccount, parseAccount, UnknownAccount } from "./accountProof.ts";
import { dataOf, listOf } from "./jsonFields.ts";

/** What somebody says that a block wrote to an account. A field that is absent was not written. */
export interface ClaimedWrites {
  readonly nonce: bigint | undefined;
  readonly balance: bigint | undefined;
  readonly codeHash: Hash | undefined;
  /** All slots outside `slots` became zero. */
  readonly isCleared: boolean;
  /** Values without leading zeros. Zero is empty. */
  readonly slots: ReadonlyMap<Hash, Uint8Array>;
  /** The block may have written more to the account than the claim has. */
  readonly isOpen: boolean;
}

/**
 * What a block wrote to the slots of an account. `claimed`: exactly what the claim has. `nothing`: no slot has changed.
 * `cleared`: all slots are zero. `unknown`: any slot may have changed.
 */
type WrittenStorage = "claimed" | "nothing" | "cleared" | "unknown";

/** An account before and after a block. */
export interface ProvenWrites {
  readonly before: ProvenAccount;
  readonly after: ProvenAccount;
  readonly storage: WrittenStorage;
}

export interface WitnessedBlock {
  /** Of the parent's header. */
  readonly parentStateRoot: Hash;
  /** Of the block's header. */
  readonly stateRoot: Hash;
  readonly nodes: TrieNodes;
  readonly claims: ReadonlyMap<Address, ClaimedWrites>;
  /** Accounts after the block, each proven below `stateRoot`. */
  readonly leaves: ReadonlyMap<Address, ProvenAccount>;
}

/**
 * `proven`: the block wrote this, and nothing else. `open`: the leaves of these accounts are needed. `refused`: the claim is wrong or
 * not complete. `missing`: the witness lacks a node, or has one of an unknown form.
 */
export type WitnessOutcome =
  | { readonly kind: "proven"; readonly writes: ReadonlyMap<Address, ProvenWrites> }
  | { readonly kind: "open"; readonly addresses: readonly Address[] }
  | { readonly kind: "refused" }
  | { readonly kind: "missing" };

/** Returns the nodes of a response to debug_executionWitness. Nothing else in it is used. Throws MalformedField. */
export const parseWitness = ({ state }: Fields): TrieNodes =>
  new TrieNodes(listOf(state).map((node) => parseData(dataOf(node))));

const readAccount = (trie: PartialTrie, key: Uint8Array): ProvenAccount => {
  const leaf = trie.get(key);
  return leaf === undefined ? NO_ACCOUNT : parseAccount(leaf);
};

const encodeAccount = ({ nonce, balance, storageHash, codeHash }: ProvenAccount): Uint8Array =>
  encodeList([
    ...[encodeNumber(nonce), encodeNumber(balance)],
    ...[encodeBytes(parseData(storageHash)), encodeBytes(parseData(codeHash))],
  ]);

/** An account with nothing is removed, whatever its slots are (EIP-161). */
const isEmpty = ({ nonce, balance, codeHash }: ProvenAccount): boolean =>
  nonce === 0n && balance === 0n && codeHash === EMPTY_CODE_HASH;

const isSameAccount = (one: ProvenAccount, other: ProvenAccount): boolean =>
  one.nonce === other.nonce &&
  one.balance === other.balance &&
  one.storageHash === other.storageHash &&
  one.codeHash === other.codeHash;

/** Runs a step that may need a node that is not there. Returns undefined then. */
const ifThere = <T>(run: () => T): T | undefined => {
  try {
    return run();
  } catch (error) {
    if (error instanceof MissingNode) {
      return undefined;
    }
    throw error;
  }
};

/** Returns the root of a trie with these values by hashed key: all writes first, then the removals (see PartialTrie). */
const updatedRoot = (trie: PartialTrie, values: ReadonlyMap<Data, Uint8Array | undefined>): Hash => {
  const keyed = [...values].map(([key, value]) => [keccak256(parseData(key)), value] as const);
  for (const [key, value] of keyed) {
    if (value !== undefined) {
      trie.put(key, value);
    }
  }
  for (const [key, value] of keyed) {
    if (value === undefined) {
      trie.remove(key);
    }
  }
  return formatData(trie.root);
};

const storageAfter = (nodes: TrieNodes, { storageHash }: ProvenAccount, { isCleared, slots }: ClaimedWrites): Hash => {
  const root = isCleared ? EMPTY_STORAGE_HASH : storageHash;
  if (slots.size === 0) {
    return root;
  }
  const values = [...slots].map(([slot, value]) => [slot, value.length > 0 ? encodeBytes(value) : undefined] as const);
  return updatedRoot(new PartialTrie(nodes, parseData(root)), new Map(values));
};

const isStored = ({ exists, storageHash }: ProvenAccount): boolean => exists && storageHash !== EMPTY_STORAGE_HASH;

/** Returns the account with the claimed fields. Without an account, no claimed slot is bound by its storage root: all are zero. */
const claimedWrites = (nodes: TrieNodes, before: ProvenAccount, claim: ClaimedWrites): ProvenWrites => {
  const { nonce, balance, codeHash, slots } = claim;
  const after = {
    exists: true,
    nonce: nonce ?? before.nonce,
    balance: balance ?? before.balance,
    codeHash: codeHash ?? before.codeHash,
    storageHash: before.storageHash,
  };
  if (isEmpty(after)) {
    return { before, after: NO_ACCOUNT, storage: isStored(before) || slots.size > 0 ? "cleared" : "nothing" };
  }
  return { before, after: { ...after, storageHash: storageAfter(nodes, before, claim) }, storage: "claimed" };
};

/** Returns the account whose leaf after the block is proven by itself, and what that shows of its slots. */
const openWrites = (
  nodes: TrieNodes,
  before: ProvenAccount,
  after: ProvenAccount,
  claim: ClaimedWrites,
): ProvenWrites => {
  const { storageHash } = after;
  if (storageHash === before.storageHash) {
    return { before, after, storage: "nothing" };
  }
  if (storageHash === EMPTY_STORAGE_HASH) {
    return { before, after, storage: "cleared" };
  }
  const isClaimed = ifThere(() => storageAfter(nodes, before, claim)) === storageHash;
  return { before, after, storage: isClaimed ? "claimed" : "unknown" };
};

/** Applies the accounts after a block to the trie of its parent. */
const rootAfter = (trie: PartialTrie, accounts: ReadonlyMap<Address, ProvenWrites>): Hash => {
  const changed = [...accounts].filter(([, { before, after }]) => !isSameAccount(before, after));
  return updatedRoot(
    trie,
    new Map(changed.map(([address, { after }]) => [address, after.exists ? encodeAccount(after) : undefined])),
  );
};

const applyClaims = ({ parentStateRoot, stateRoot, nodes, claims, leaves }: WitnessedBlock): WitnessOutcome => {
  const trie = new PartialTrie(nodes, parseData(parentStateRoot));
  const writes = new Map<Address, ProvenWrites>();
  const open: Address[] = [];
  for (const [address, claim] of claims) {
    const read = () => readAccount(trie, keccak256(parseData(address)));
    const before = claim.isOpen ? ifThere(read) : read();
    if (before === undefined) {
      // The block did not touch the account: if it had changed it without a node here, the root would differ.
      continue;
    }
    const leaf = leaves.get(address);
    if (!claim.isOpen) {
      writes.set(address, claimedWrites(nodes, before, claim));
    } else if (leaf !== undefined) {
      writes.set(address, openWrites(nodes, before, leaf, claim));
    } else {
      open.push(address);
    }
  }
  if (open.length > 0) {
    return { kind: "open", addresses: open };
  }
  return rootAfter(trie, writes) === stateRoot ? { kind: "proven", writes } : { kind: "refused" };
};

/**
 * Proves the claimed writes of a block: applied to the state of its parent, they give the state root of its header. Only the hashes
 * of nodes are trusted, so a wrong witness proves nothing. An account that is open takes its leaf from a proof below that root.
 * Both headers must have their own hashes, and the second must name the first as its parent.
 */
export const proveWrites = (block: WitnessedBlock): WitnessOutcome => {
  try {
    return applyClaims(block);
  } catch (error) {
    if (error instanceof MissingNode || error instanceof WrongProof || error instanceof UnknownAccount) {
      return { kind: "missing" };
    }
    throw error;
  }
};
