import { createMPT, type MerklePatriciaTrie } from "@ethereumjs/mpt";
import { RLP } from "@ethereumjs/rlp";
import type { AccountChange, AccountState, StateChanges } from "../../src/core/stateReader.ts";
import { type Address, type Data, formatData, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { numberBytes } from "../../src/ethereum/rlp.ts";

const NOTHING = new Uint8Array(0);
const EMPTY_ROOT: Hash = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";

/** A trie path that the witness does not cover: the value is not known. */
export class NotInWitness extends Error {}

export interface WitnessAccount extends AccountState {
  readonly storageRoot: Hash;
}

/** One state, read from an execution witness: trie nodes by hash below a state root, and codes by hash. */
export interface WitnessState {
  readonly root: Hash;
  /** Undefined if the trie proves that there is no account. Throws NotInWitness. */
  account(address: Address): WitnessAccount | undefined;
  /** Returns the value without leading zero bytes. Throws NotInWitness. */
  slot(address: Address, slot: Hash): Uint8Array;
  /** Throws NotInWitness. */
  code(hash: Hash): Uint8Array;
  /** Computes the root of the state with these changes. */
  rootAfter(changes: StateChanges): Promise<Hash>;
}

export interface WitnessParts {
  readonly root: Hash;
  /** RLP of each node. */
  readonly nodes: readonly Data[];
  readonly codes: readonly Data[];
}

type Item = Uint8Array | readonly Item[];

const nibblesOf = (bytes: Uint8Array): number[] => [...bytes].flatMap((byte) => [byte >> 4, byte & 15]);
const bytesOf = (item: Item | undefined): Uint8Array => (item instanceof Uint8Array ? item : NOTHING);

/** Follows a hashed key through nodes. Undefined if the trie proves that the key has no value. */
const walk = (nodes: ReadonlyMap<Hash, Uint8Array>, root: Hash, key: Data): Uint8Array | undefined => {
  if (root === EMPTY_ROOT) {
    return undefined;
  }
  let path = nibblesOf(keccak256(parseData(key)));
  let reference: Item = parseData(root);
  for (;;) {
    const node = nodeOf(nodes, reference);
    if (node.length === 0) {
      return undefined;
    }
    if (node.length === 17) {
      const [nibble = 16, ...rest] = path;
      reference = node[nibble] ?? NOTHING;
      path = rest;
      if (bytesOf(reference).length === 0 && reference instanceof Uint8Array) {
        return undefined;
      }
      continue;
    }
    const [first = 0, ...others] = nibblesOf(bytesOf(node[0]));
    const part = first & 1 ? others : others.slice(1);
    if (part.some((nibble, at) => nibble !== path[at])) {
      return undefined;
    }
    path = path.slice(part.length);
    if (first >= 2) {
      return path.length === 0 ? bytesOf(node[1]) : undefined;
    }
    reference = node[1] ?? NOTHING;
  }
};

/** Nodes shorter than a hash are embedded in their parent. */
const nodeOf = (nodes: ReadonlyMap<Hash, Uint8Array>, reference: Item): readonly Item[] => {
  if (!(reference instanceof Uint8Array)) {
    return reference;
  }
  const node = nodes.get(formatData(reference));
  if (node === undefined) {
    throw new NotInWitness(`the witness lacks node ${formatData(reference)}`);
  }
  return RLP.decode(node) as Item[];
};

const quantityOf = (bytes: Uint8Array): bigint => (bytes.length === 0 ? 0n : BigInt(formatData(bytes)));

export const createWitnessState = ({ root, nodes: rlps, codes: bytes }: WitnessParts): WitnessState => {
  const nodes = new Map(rlps.map(parseData).map((node) => [keccak256Hex(node), node]));
  const codes = new Map([NOTHING, ...bytes.map(parseData)].map((code) => [keccak256Hex(code), code]));

  /** Walking the trie takes time that a node does not need. */
  const values = new Map<string, Uint8Array | undefined>();
  const find = (at: Hash, key: Data): Uint8Array | undefined => {
    const id = at + key;
    if (!values.has(id)) {
      values.set(id, walk(nodes, at, key));
    }
    return values.get(id);
  };

  const account: WitnessState["account"] = (address) => {
    const value = find(root, address);
    if (value === undefined) {
      return undefined;
    }
    const [nonce, balance, storageRoot, codeHash] = (RLP.decode(value) as Uint8Array[]).map(bytesOf);
    return {
      nonce: quantityOf(nonce ?? NOTHING),
      balance: quantityOf(balance ?? NOTHING),
      storageRoot: formatData(storageRoot ?? NOTHING),
      codeHash: formatData(codeHash ?? NOTHING),
    };
  };

  return {
    root,
    account,
    slot: (address, slot) => {
      const value = find(account(address)?.storageRoot ?? EMPTY_ROOT, slot);
      return value === undefined ? NOTHING : bytesOf(RLP.decode(value) as Uint8Array);
    },
    code: (hash) => {
      const code = codes.get(hash);
      if (code === undefined) {
        throw new NotInWitness(`the witness lacks code ${hash}`);
      }
      return code;
    },
    rootAfter: async (changes) => {
      const trie = await trieOf(nodes, root);
      for (const [address, change] of changes) {
        const key = keccak256(parseData(address));
        if (change.account === undefined) {
          await trie.del(key);
        } else {
          await trie.put(key, await encodeAccount(nodes, account(address), change));
        }
      }
      return formatData(trie.root());
    },
  };
};

const trieOf = async (nodes: ReadonlyMap<Hash, Uint8Array>, root: Hash): Promise<MerklePatriciaTrie> => {
  const trie = await createMPT({ useRootPersistence: false });
  for (const [hash, node] of nodes) {
    await trie.database().put(parseData(hash), node);
  }
  if (root !== EMPTY_ROOT) {
    trie.root(parseData(root));
  }
  return trie;
};

const encodeAccount = async (
  nodes: ReadonlyMap<Hash, Uint8Array>,
  before: WitnessAccount | undefined,
  { account, isCleared, slots }: AccountChange,
): Promise<Uint8Array> => {
  const oldRoot = isCleared ? EMPTY_ROOT : (before?.storageRoot ?? EMPTY_ROOT);
  let storageRoot = oldRoot;
  if (slots.size > 0) {
    const trie = await trieOf(nodes, oldRoot);
    for (const [slot, value] of slots) {
      const key = keccak256(parseData(slot));
      if (value.length === 0) {
        await trie.del(key);
      } else {
        await trie.put(key, RLP.encode(value));
      }
    }
    storageRoot = formatData(trie.root());
  }
  const { nonce = 0n, balance = 0n, codeHash = EMPTY_CODE_HASH } = account ?? {};
  return RLP.encode([numberBytes(nonce), numberBytes(balance), parseData(storageRoot), parseData(codeHash)]);
};
