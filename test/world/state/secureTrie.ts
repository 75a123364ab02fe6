import { type Data, formatData, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256 } from "../../../src/ethereum/keccak.ts";
import { encodeBytes, encodeList } from "../../../src/ethereum/rlp.ts";

const BRANCHES = 16;
const HASH_BYTES = 32;
const NOTHING = Uint8Array.of(0x80);

/** The nibbles of a hashed key, and the value. */
interface Leaf {
  readonly path: string;
  readonly value: Uint8Array;
}

/** A node with its encoding, and the children by their first nibble. */
interface TrieNode {
  readonly encoded: Uint8Array;
  /** Of an extension or a leaf. */
  readonly path: string;
  readonly children: ReadonlyMap<string, TrieNode>;
}

/** Encodes a path with the flag of a leaf, and of an odd number of nibbles. */
const encodePath = (path: string, isLeaf: boolean): Uint8Array => {
  const flag = (isLeaf ? 2 : 0) + (path.length % 2);
  return encodeBytes(parseData(`0x${flag}${path.length % 2 === 0 ? "0" : ""}${path}`));
};

/** A node of 32 bytes or more is referenced by its hash. */
const referenceOf = ({ encoded }: TrieNode): Uint8Array =>
  encoded.length < HASH_BYTES ? encoded : encodeBytes(keccak256(encoded));

/** Whether a node of a path lies outside its parent. The first one always does. */
const isOutside = ({ encoded }: TrieNode, index: number): boolean => index === 0 || encoded.length >= HASH_BYTES;

const commonLength = (one: string, other: string): number => {
  let length = 0;
  while (length < one.length && one[length] === other[length]) {
    length++;
  }
  return length;
};

const createBranch = (leaves: readonly Leaf[]): TrieNode => {
  const groups = Map.groupBy(leaves, ({ path }) => path.charAt(0));
  const children = new Map(
    [...groups].map(([nibble, own]) => [
      nibble,
      createNode(own.map((leaf) => ({ ...leaf, path: leaf.path.slice(1) }))),
    ]),
  );
  const references = Array.from({ length: BRANCHES }, (_, index) => {
    const child = children.get(index.toString(BRANCHES));
    return child === undefined ? NOTHING : referenceOf(child);
  });
  return { encoded: encodeList([...references, NOTHING]), path: "", children };
};

/** Leaves are sorted by their paths. */
const createNode = (leaves: readonly Leaf[]): TrieNode => {
  const [first, last] = [leaves[0], leaves.at(-1)];
  if (first === undefined || last === undefined) {
    return { encoded: NOTHING, path: "", children: new Map() };
  }
  if (leaves.length === 1) {
    const { path, value } = first;
    return { encoded: encodeList([encodePath(path, true), encodeBytes(value)]), path, children: new Map() };
  }
  const shared = first.path.slice(0, commonLength(first.path, last.path));
  if (shared === "") {
    return createBranch(leaves);
  }
  const child = createBranch(leaves.map((leaf) => ({ ...leaf, path: leaf.path.slice(shared.length) })));
  const encoded = encodeList([encodePath(shared, false), referenceOf(child)]);
  return { encoded, path: shared, children: new Map([["", child]]) };
};

const pathOf = (key: Data): string => formatData(keccak256(parseData(key))).slice(2);

/** A Merkle Patricia trie by hashed keys, as that of accounts and that of slots. It never changes. */
export class SecureTrie {
  readonly root: Hash;
  readonly #top: TrieNode;

  constructor(entries: Iterable<readonly [key: Data, value: Uint8Array]>) {
    const leaves = [...entries].map(([key, value]): Leaf => ({ path: pathOf(key), value }));
    this.#top = createNode(leaves.sort((one, other) => (one.path < other.path ? -1 : 1)));
    this.root = formatData(keccak256(this.#top.encoded));
  }

  /** Returns the nodes on the path of a key, as geth does: without those that lie inside their parent. None: the trie is empty. */
  proofOf(key: Data): readonly Data[] {
    return this.#path(key)
      .filter(isOutside)
      .map(({ encoded }) => formatData(encoded));
  }

  /** Returns the nodes that a removal of the key needs: its path, and what hangs on its branches. */
  nodesToRemove(key: Data): readonly Data[] {
    const beside = this.#path(key).flatMap(({ children }) => [...children.values()]);
    const hashed = beside.filter(({ encoded }) => encoded.length >= HASH_BYTES);
    return [...this.proofOf(key), ...hashed.map(({ encoded }) => formatData(encoded))];
  }

  #path(key: Data): readonly TrieNode[] {
    const nodes: TrieNode[] = [];
    let rest = pathOf(key);
    let node: TrieNode | undefined = this.#top.encoded === NOTHING ? undefined : this.#top;
    while (node !== undefined) {
      nodes.push(node);
      if (!rest.startsWith(node.path)) {
        break;
      }
      rest = rest.slice(node.path.length);
      const child = node.children.get("") ?? node.children.get(rest.charAt(0));
      rest = node.children.has("") ? rest : rest.slice(1);
      node = child;
    }
    return nodes;
  }
}
