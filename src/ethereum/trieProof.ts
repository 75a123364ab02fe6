// Proofs of a Merkle Patricia trie with hashed keys (Yellow Paper, appendix D), as in EIP-1186.

import { type Data, parseData } from "./hex.ts";
import { keccak256 } from "./keccak.ts";

/** The nodes do not prove what the trie of that root has under the key. */
export class WrongProof extends Error {
  override readonly name = "WrongProof";
}

/** One item of an RLP list. `bytes`: its payload. `encoded`: with its prefix. */
interface Item {
  readonly isList: boolean;
  readonly bytes: Uint8Array;
  readonly encoded: Uint8Array;
}

const BRANCH_ITEMS = 17;
const BRANCH_WIDTH = 16;
const HASH_BYTES = 32;
const MAX_SHORT = 55;

/** Reads the item at `at`. Throws WrongProof if it is not the one RLP encoding of its payload, or too long for `bytes`. */
const readItem = (bytes: Uint8Array, at: number): Item => {
  const first = bytes[at] ?? 0;
  if (first < 0x80) {
    const own = bytes.subarray(at, at + 1);
    return { isList: false, bytes: own, encoded: own };
  }
  const isList = first >= 0xc0;
  const short = first - (isList ? 0xc0 : 0x80);
  const sizeBytes = short > MAX_SHORT ? short - MAX_SHORT : 0;
  let length = short;
  if (sizeBytes > 0) {
    length = 0;
    for (let index = 1; index <= sizeBytes; index++) {
      length = length * 256 + (bytes[at + index] ?? 0);
    }
  }
  const start = at + 1 + sizeBytes;
  const isMinimal = sizeBytes === 0 || (length > MAX_SHORT && bytes[at + 1] !== 0);
  const isOwnByte = !isList && length === 1 && (bytes[start] ?? 0) < 0x80;
  if (!isMinimal || isOwnByte || start + length > bytes.length) {
    throw new WrongProof("not RLP");
  }
  return { isList, bytes: bytes.subarray(start, start + length), encoded: bytes.subarray(at, start + length) };
};

const readWhole = (bytes: Uint8Array): Item => {
  const item = bytes.length === 0 ? undefined : readItem(bytes, 0);
  if (item?.encoded.length !== bytes.length) {
    throw new WrongProof("bytes after an item");
  }
  return item;
};

/** Returns the items of a list's payload. */
const itemsIn = (payload: Uint8Array): readonly Item[] => {
  const items: Item[] = [];
  for (let at = 0; at < payload.length; ) {
    const item = readItem(payload, at);
    items.push(item);
    at += item.encoded.length;
  }
  return items;
};

const readNode = (encoded: Uint8Array): readonly Item[] => {
  const { isList, bytes } = readWhole(encoded);
  if (!isList) {
    throw new WrongProof("a node is no list");
  }
  return itemsIn(bytes);
};

const stringOf = ({ isList, bytes }: Item): Uint8Array => {
  if (isList) {
    throw new WrongProof("a list instead of a string");
  }
  return bytes;
};

/** Decodes an RLP string that fills `bytes`. Throws WrongProof. */
export const decodeString = (bytes: Uint8Array): Uint8Array => stringOf(readWhole(bytes));

/** Decodes an RLP list of strings that fills `bytes`. Throws WrongProof. */
export const decodeStrings = (bytes: Uint8Array): readonly Uint8Array[] => readNode(bytes).map(stringOf);

const isEqual = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

const EMPTY_STRING = Uint8Array.of(0x80);
const EMPTY_ROOT_BYTES = keccak256(EMPTY_STRING);

const nibbleAt = (key: Uint8Array, at: number): number => {
  const byte = key[at >> 1] ?? 0;
  return at % 2 === 0 ? byte >> 4 : byte & 15;
};

/** The hex-prefix path of a leaf or an extension. Source: Yellow Paper, appendix C. */
interface Path {
  readonly isLeaf: boolean;
  readonly encoded: Uint8Array;
  /** The first nibble of the path in `encoded`: after the flag, and its padding. */
  readonly start: number;
  readonly length: number;
}

const readPath = (encoded: Uint8Array): Path => {
  const flag = nibbleAt(encoded, 0);
  const isOdd = flag % 2 === 1;
  if (encoded.length === 0 || flag > 3 || (!isOdd && nibbleAt(encoded, 1) !== 0)) {
    throw new WrongProof("not a path");
  }
  const start = isOdd ? 1 : 2;
  return { isLeaf: flag >= 2, encoded, start, length: encoded.length * 2 - start };
};

/** Whether the key continues with the path at `depth`. */
const isOnPath = (key: Uint8Array, depth: number, { encoded, start, length }: Path): boolean => {
  for (let at = 0; at < length; at++) {
    if (nibbleAt(encoded, start + at) !== nibbleAt(key, depth + at)) {
      return false;
    }
  }
  return true;
};

/** A node of a proof. */
interface ProofNode {
  readonly bytes: Uint8Array;
  readonly hash: Uint8Array;
  readonly items: readonly Item[];
}

/** The nodes of a proof in the order of their use. */
class NodeList {
  readonly #nodes: readonly ProofNode[];
  #next = 0;

  constructor(nodes: readonly ProofNode[]) {
    this.#nodes = nodes;
  }

  /** Returns the next node, which must have that hash. */
  take(hash: Uint8Array): readonly Item[] {
    const node = this.#nodes[this.#next++];
    if (node === undefined || !isEqual(node.hash, hash)) {
      throw new WrongProof("a node is missing");
    }
    return node.items;
  }

  /** A node below 32 bytes lies inside its parent. Some nodes of the network repeat it in the list. */
  skip(inline: Uint8Array): void {
    const node = this.#nodes[this.#next];
    if (node !== undefined && isEqual(node.bytes, inline)) {
      this.#next++;
    }
  }

  end(): void {
    if (this.#next !== this.#nodes.length) {
      throw new WrongProof("surplus nodes");
    }
  }
}

/** The place where a key's path goes on, or what the trie has under the key; undefined: nothing. */
type Step = { readonly child: Item; readonly depth: number } | { readonly value: Uint8Array | undefined };

const inBranch = (items: readonly Item[], key: Uint8Array, depth: number): Step => {
  const child = items[nibbleAt(key, depth)];
  const ownValue = items[BRANCH_WIDTH];
  // All keys have one length, so that no value ends in a branch.
  if (child === undefined || ownValue === undefined || stringOf(ownValue).length > 0 || depth >= key.length * 2) {
    throw new WrongProof("not a branch");
  }
  return child.encoded[0] === EMPTY_STRING[0] ? { value: undefined } : { child, depth: depth + 1 };
};

const onPath = (pathItem: Item, child: Item, key: Uint8Array, depth: number): Step => {
  const path = readPath(stringOf(pathItem));
  const left = key.length * 2 - depth;
  if (path.isLeaf) {
    const value = stringOf(child);
    if (path.length !== left || value.length === 0) {
      throw new WrongProof("not a leaf");
    }
    return { value: isOnPath(key, depth, path) ? value : undefined };
  }
  if (path.length === 0 || path.length >= left) {
    throw new WrongProof("not an extension");
  }
  return isOnPath(key, depth, path) ? { child, depth: depth + path.length } : { value: undefined };
};

const step = (items: readonly Item[], key: Uint8Array, depth: number): Step => {
  const [first, second] = items;
  if (items.length === BRANCH_ITEMS) {
    return inBranch(items, key, depth);
  }
  if (items.length !== 2 || first === undefined || second === undefined) {
    throw new WrongProof("neither a branch nor a path");
  }
  return onPath(first, second, key, depth);
};

const follow = (nodes: NodeList, child: Item): readonly Item[] => {
  if (child.isList) {
    if (child.encoded.length >= HASH_BYTES) {
      throw new WrongProof("a long node inside its parent");
    }
    nodes.skip(child.encoded);
    return itemsIn(child.bytes);
  }
  return nodes.take(child.bytes);
};

const walk = (nodes: NodeList, root: Uint8Array, key: Uint8Array): Uint8Array | undefined => {
  let items = nodes.take(root);
  let depth = 0;
  for (;;) {
    const next = step(items, key, depth);
    if ("value" in next) {
      return next.value;
    }
    items = follow(nodes, next.child);
    depth = next.depth;
  }
};

/** An empty node proves nothing. Nethermind adds one (`0x`) for an empty place, and others the empty trie (`0x80`). */
const isEmptyNode = (node: Data): boolean => node === "0x" || node === "0x80";

/** Reads the proofs of one response. Proofs of several keys have their upper nodes in common, which are hashed once. */
export class TrieProofs {
  readonly #known = new Map<Data, ProofNode>();

  /**
   * Returns the value that the trie of the root has under the hashed key (32 bytes), or undefined if it has none.
   * `proof`: all nodes on the path of the key, from the root down. Throws WrongProof if they do not prove it, also for surplus nodes.
   */
  read(root: Uint8Array, key: Uint8Array, proof: readonly Data[]): Uint8Array | undefined {
    const list = new NodeList(proof.filter((node) => !isEmptyNode(node)).map((node) => this.#parse(node)));
    const value = isEqual(root, EMPTY_ROOT_BYTES) ? undefined : walk(list, root, key);
    list.end();
    return value;
  }

  #parse(text: Data): ProofNode {
    const known = this.#known.get(text);
    if (known !== undefined) {
      return known;
    }
    const bytes = parseData(text);
    const node = { bytes, hash: keccak256(bytes), items: readNode(bytes) };
    this.#known.set(text, node);
    return node;
  }
}
