import { createMerkleProof, createMPT, type MerklePatriciaTrie } from "@ethereumjs/mpt";
import { RLP } from "@ethereumjs/rlp";
import { type Data, formatData, formatQuantity, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256 } from "../../../src/ethereum/keccak.ts";
import { numberBytes, stripZeros } from "../../../src/ethereum/rlp.ts";

export interface ProvenStateAccount {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly codeHash: Hash;
  readonly slots: ReadonlyMap<Hash, bigint>;
}

/** A response to eth_getProof. */
export interface ProofResponse {
  readonly address: Data;
  readonly accountProof: readonly Data[];
  readonly balance: string;
  readonly nonce: string;
  readonly codeHash: string;
  readonly storageHash: string;
  readonly storageProof: readonly { readonly key: string; readonly value: string; readonly proof: readonly Data[] }[];
}

/** A state with proofs of the library's trie, as geth returns them. */
export interface ProvenState {
  readonly stateRoot: Data;
  proofOf(address: Data, keys: readonly string[]): Promise<ProofResponse>;
}

const ROOT_BYTES = 32;
export const slotOf = (number: bigint | number): Hash => `0x${number.toString(16).padStart(64, "0")}`;

const createTrie = (): Promise<MerklePatriciaTrie> => createMPT({ useRootPersistence: false });

/** Returns the nodes on the path of a hashed key. `repeatsInline`: also those that lie inside their parent. */
export const nodesOnPath = async (
  trie: MerklePatriciaTrie,
  key: Uint8Array,
  repeatsInline = false,
): Promise<readonly Data[]> => {
  const nodes = await createMerkleProof(trie, key);
  return nodes.filter((node, index) => index === 0 || repeatsInline || node.length >= ROOT_BYTES).map(formatData);
};

const storageTrieOf = async ({ slots }: ProvenStateAccount): Promise<MerklePatriciaTrie> => {
  const trie = await createTrie();
  for (const [slot, value] of slots) {
    await trie.put(keccak256(parseData(slot)), RLP.encode(stripZeros(numberBytes(value))));
  }
  return trie;
};

/** Puts accounts into a trie. Slots are not zero. */
export const createProvenState = async (accounts: ReadonlyMap<Data, ProvenStateAccount>): Promise<ProvenState> => {
  const trie = await createTrie();
  const storages = new Map<Data, MerklePatriciaTrie>();
  for (const [address, account] of accounts) {
    const storage = await storageTrieOf(account);
    storages.set(address, storage);
    const fields = [numberBytes(account.nonce), numberBytes(account.balance), storage.root()];
    await trie.put(keccak256(parseData(address)), RLP.encode([...fields, parseData(account.codeHash)]));
  }
  const none: ProvenStateAccount = { nonce: 0n, balance: 0n, codeHash: EMPTY_CODE_HASH, slots: new Map() };
  const emptyTrie = await createTrie();
  return {
    stateRoot: formatData(trie.root()),
    proofOf: async (address, keys) => {
      const account = accounts.get(address) ?? none;
      const storage = storages.get(address) ?? emptyTrie;
      const proven = async (key: string) => {
        const slot = slotOf(BigInt(key));
        const proof = account.slots.size === 0 ? [] : await nodesOnPath(storage, keccak256(parseData(slot)));
        return { key, value: formatQuantity(account.slots.get(slot) ?? 0n), proof };
      };
      return {
        address,
        accountProof: await nodesOnPath(trie, keccak256(parseData(address))),
        ...{ balance: formatQuantity(account.balance), nonce: formatQuantity(account.nonce) },
        ...{ codeHash: account.codeHash, storageHash: formatData(storage.root()) },
        storageProof: await Promise.all(keys.map(proven)),
      };
    },
  };
};
