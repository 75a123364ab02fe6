import { LRUCache } from "lru-cache";
import { type Address, type Data, formatQuantity, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../../../src/ethereum/systemContracts.ts";
import type { ProofResponse } from "../../support/builders/provenState.ts";
import type { BlockDraft, PhaseDiff } from "./blockDraft.ts";
import { CodeHashes } from "./codeHashes.ts";
import { SecureTrie } from "./secureTrie.ts";

interface StoredAccount {
  readonly balance: bigint;
  readonly nonce: bigint;
  readonly code: Data;
  /** The number of times that all slots became zero. */
  readonly cleared: string;
  /** Without those that are zero. */
  readonly slots: ReadonlyMap<Hash, bigint>;
  readonly storage: SecureTrie;
}

/** All accounts after a block, with their trie. */
interface StoredState {
  readonly accounts: ReadonlyMap<Address, StoredAccount>;
  readonly trie: SecureTrie;
  /** What the block read or wrote: accounts with slots. */
  readonly touched: ReadonlyMap<Address, ReadonlySet<Hash>>;
}

/** Every block calls them: EIP-4788, EIP-2935, EIP-7002, EIP-7251. */
const CALLED: readonly Address[] = [
  ...[BEACON_ROOTS, BLOCK_HASHES],
  "0x00000961ef480eb55e80d19ad83579a64c007002",
  "0x0000bbddc7ce488642fb579f8b00f3a590007251",
];

/** The blocks whose state has proofs. */
const MAX_STATES = 400;
const EMPTY_TRIE = new SecureTrie([]);
const NO_ACCOUNT: StoredAccount = {
  ...{ balance: 0n, nonce: 0n, code: "0x", cleared: "0", slots: new Map(), storage: EMPTY_TRIE },
};
const ADDRESS_LENGTH = 42;

const exists = ({ balance, nonce, code }: StoredAccount): boolean => balance > 0n || nonce > 0n || code !== "0x";

const storageTrie = (slots: ReadonlyMap<Hash, bigint>): SecureTrie =>
  new SecureTrie([...slots].map(([slot, value]) => [slot, encodeNumber(value)]));

/** Applies the writes of one block to an account. Their names are those of stateKeys.ts, without the address. */
const withWrites = (account: StoredAccount, writes: ReadonlyMap<string, string>): StoredAccount => {
  const cleared = writes.get("g") ?? account.cleared;
  const slots = new Map(cleared === account.cleared ? account.slots : []);
  for (const [name, value] of writes) {
    const [kind, ofCleared, slot] = name.split(":");
    if (kind === "s" && ofCleared === cleared) {
      slots.set(slot as Hash, BigInt(value));
    }
  }
  for (const [slot, value] of slots) {
    if (value === 0n) {
      slots.delete(slot);
    }
  }
  return {
    balance: BigInt(writes.get("b") ?? account.balance),
    nonce: BigInt(writes.get("n") ?? account.nonce),
    code: (writes.get("c") ?? account.code) as Data,
    ...{ cleared, slots },
    storage: storageTrie(slots),
  };
};

/** Groups writes by account. */
const byAccount = (writes: ReadonlyMap<string, string>): ReadonlyMap<Address, Map<string, string>> => {
  const grouped = new Map<Address, Map<string, string>>();
  for (const [key, value] of writes) {
    const address = key.slice(1, 1 + ADDRESS_LENGTH) as Address;
    const own = grouped.get(address) ?? new Map<string, string>();
    grouped.set(address, own.set(key.charAt(0) + key.slice(1 + ADDRESS_LENGTH), value));
  }
  return grouped;
};

const touchedIn = (phases: readonly PhaseDiff[]): ReadonlyMap<Address, ReadonlySet<Hash>> => {
  const touched = new Map(CALLED.map((address) => [address, new Set<Hash>()]));
  for (const { address, slots } of phases.flat()) {
    const own = touched.get(address) ?? new Set();
    touched.set(address, own);
    for (const [slot] of slots) {
      own.add(slot);
    }
  }
  return touched;
};

/** The state tries of a chain's newest blocks, of all branches. */
export class StateRoots {
  readonly #states = new LRUCache<Hash, StoredState>({ max: MAX_STATES });
  readonly #codeHashes = new CodeHashes();

  /** Returns the state root after a block that makes these writes, and the function that keeps the state under the block's hash. */
  next(parent: Hash | undefined, { writes, phases }: Pick<BlockDraft, "writes" | "phases">) {
    const before = parent === undefined ? undefined : this.#states.get(parent);
    const accounts = new Map(before?.accounts);
    for (const [address, own] of byAccount(writes)) {
      const account = withWrites(accounts.get(address) ?? NO_ACCOUNT, own);
      accounts.set(address, account);
    }
    const trie = new SecureTrie(
      [...accounts].flatMap(([address, account]) => (exists(account) ? [[address, this.#encode(account)]] : [])),
    );
    const state = { accounts, trie, touched: touchedIn(phases) };
    return { root: trie.root, keep: (hash: Hash) => void this.#states.set(hash, state) };
  }

  /** Answers eth_getProof after a block. Undefined: the block is too old. */
  proofAt(hash: Hash, address: Address, slots: readonly Hash[]): ProofResponse | undefined {
    const state = this.#states.get(hash);
    if (state === undefined) {
      return undefined;
    }
    const known = state.accounts.get(address) ?? NO_ACCOUNT;
    const account = exists(known) ? known : NO_ACCOUNT;
    return {
      address,
      accountProof: state.trie.proofOf(address),
      ...{ balance: formatQuantity(account.balance), nonce: formatQuantity(account.nonce) },
      ...{ codeHash: this.#codeHashes.of(account.code), storageHash: account.storage.root },
      storageProof: slots.map((slot) => ({
        ...{ key: slot, value: formatQuantity(account.slots.get(slot) ?? 0n) },
        proof: account.storage.proofOf(slot),
      })),
    };
  }

  /** Returns the nodes of the parent's tries that a block needs, the root first, as an execution witness. Undefined: it is too old. */
  witnessOf(parent: Hash, hash: Hash): readonly Data[] | undefined {
    const before = this.#states.get(parent);
    const after = this.#states.get(hash);
    if (before === undefined || after === undefined) {
      return undefined;
    }
    const needed = (trie: SecureTrie, key: Data, isRemoved: boolean) =>
      isRemoved ? trie.nodesToRemove(key) : trie.proofOf(key);
    const nodes = [...after.touched].flatMap(([address, slots]) => {
      const old = before.accounts.get(address) ?? NO_ACCOUNT;
      const own = after.accounts.get(address) ?? NO_ACCOUNT;
      return [
        ...needed(before.trie, address, exists(old) && !exists(own)),
        ...[...slots].flatMap((slot) => needed(old.storage, slot, old.slots.has(slot) && !own.slots.has(slot))),
      ];
    });
    return [...new Set(nodes)];
  }

  #encode({ nonce, balance, code, storage }: StoredAccount): Uint8Array {
    const hashes = [storage.root, this.#codeHashes.of(code)].map((hash) => encodeBytes(parseData(hash)));
    return encodeList([encodeNumber(nonce), encodeNumber(balance), ...hashes]);
  }
}
