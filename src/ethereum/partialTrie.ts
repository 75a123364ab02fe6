// Updates of a Merkle Patricia trie of which only some nodes are known, as those of an execution witness.

import { formatData } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import { concatBytes, encodeBytes, encodeList } from "./rlp.ts";
import { EMPTY_NODE, EMPTY_ROOT, encodeLeaf, encodePath, nibblesOf, nodeReference } from "./trieEncoding.ts";
import {
  BRANCH_WIDTH,
  formOf,
  HASH_BYTES,
  inlineItems,
  nibbleAt,
  type Path,
  type RlpItem,
  readNode,
  stringOf,
  WrongProof,
} from "./trieNode.ts";

/** A node that is needed is not there. */
export class MissingNode extends Error {
  override readonly name = "MissingNode";
}

/** Only the hash of the node is known here. */
interface UnreadNode {
  readonly kind: "unread";
  readonly hash: Uint8Array;
}

/** `path`: the rest of the key, one digit a byte. */
interface LeafNode {
  readonly kind: "leaf";
  readonly path: Uint8Array;
  readonly value: Uint8Array;
}

interface ExtensionNode {
  readonly kind: "extension";
  readonly path: Uint8Array;
  readonly child: TrieNode;
}

interface BranchNode {
  readonly kind: "branch";
  /** By the next digit of the key. */
  readonly children: readonly (TrieNode | undefined)[];
}

type ReadNode = LeafNode | ExtensionNode | BranchNode;
type TrieNode = UnreadNode | ReadNode;

/** Keys are hashes. */
const KEY_DIGITS = 2 * HASH_BYTES;

const digitsOfPath = ({ encoded, start, length }: Path): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => nibbleAt(encoded, start + at));

const parseChild = (item: RlpItem): TrieNode | undefined => {
  const items = inlineItems(item);
  if (items !== undefined) {
    return parseNode(items);
  }
  const { bytes } = item;
  if (bytes.length !== 0 && bytes.length !== HASH_BYTES) {
    throw new WrongProof("not a reference");
  }
  return bytes.length === 0 ? undefined : { kind: "unread", hash: bytes };
};

const parseNode = (items: readonly RlpItem[]): ReadNode => {
  const form = formOf(items);
  if ("children" in form) {
    return { kind: "branch", children: form.children.slice(0, BRANCH_WIDTH).map(parseChild) };
  }
  const path = digitsOfPath(form.path);
  if (form.path.isLeaf) {
    return { kind: "leaf", path, value: stringOf(form.end) };
  }
  const child = parseChild(form.end);
  if (child === undefined) {
    throw new WrongProof("an extension without a child");
  }
  return { kind: "extension", path, child };
};

/** Nodes of tries by their hashes. A node is decoded when it is read first. */
export class TrieNodes {
  readonly #encoded: ReadonlyMap<string, Uint8Array>;
  readonly #decoded = new Map<string, ReadNode>();

  constructor(nodes: readonly Uint8Array[]) {
    this.#encoded = new Map(nodes.map((node) => [formatData(keccak256(node)), node]));
  }

  /** Returns the node itself. Throws MissingNode, or WrongProof if its form is wrong at that depth. */
  resolve(node: TrieNode, depth: number): ReadNode {
    const read = node.kind === "unread" ? this.#read(node.hash) : node;
    const left = KEY_DIGITS - depth;
    const isRight =
      read.kind === "branch"
        ? left > 0
        : read.kind === "leaf"
          ? read.path.length === left && read.value.length > 0
          : read.path.length > 0 && read.path.length < left;
    if (!isRight) {
      throw new WrongProof("a node does not fit to the length of keys");
    }
    return read;
  }

  #read(hash: Uint8Array): ReadNode {
    const name = formatData(hash);
    const known = this.#decoded.get(name);
    if (known !== undefined) {
      return known;
    }
    const encoded = this.#encoded.get(name);
    if (encoded === undefined) {
      throw new MissingNode(`node ${name} is missing`);
    }
    const node = parseNode(readNode(encoded));
    this.#decoded.set(name, node);
    return node;
  }
}

const sharedDigits = (path: Uint8Array, key: Uint8Array, depth: number): number => {
  let shared = 0;
  while (shared < path.length && path[shared] === key[depth + shared]) {
    shared++;
  }
  return shared;
};

const withPath = (path: Uint8Array, child: TrieNode): TrieNode =>
  path.length === 0 ? child : { kind: "extension", path, child };

const digitAt = (path: Uint8Array, at: number): number => {
  const digit = path[at];
  if (digit === undefined) {
    throw new WrongProof("a path ends early");
  }
  return digit;
};

/** Puts a leaf beside a node that has only the first `shared` digits of its path in common with the key. */
const fork = (node: LeafNode | ExtensionNode, shared: number, rest: Uint8Array, value: Uint8Array): TrieNode => {
  const { path } = node;
  const own: TrieNode =
    node.kind === "leaf"
      ? { ...node, path: path.subarray(shared + 1) }
      : withPath(path.subarray(shared + 1), node.child);
  const added: TrieNode = { kind: "leaf", path: rest.subarray(shared + 1), value };
  const children = Array.from({ length: BRANCH_WIDTH }, (): TrieNode | undefined => undefined)
    .with(digitAt(path, shared), own)
    .with(digitAt(rest, shared), added);
  return withPath(path.subarray(0, shared), { kind: "branch", children });
};

const referenceOf = (node: TrieNode | undefined): Uint8Array => {
  if (node === undefined) {
    return EMPTY_NODE;
  }
  return node.kind === "unread" ? encodeBytes(node.hash) : nodeReference(encodeNode(node));
};

const encodeNode = (node: ReadNode): Uint8Array => {
  switch (node.kind) {
    case "leaf":
      return encodeLeaf(encodePath(node.path, 0, node.path.length, true), node.value);
    case "extension":
      return encodeList([encodePath(node.path, 0, node.path.length, false), referenceOf(node.child)]);
    case "branch":
      return encodeList([...node.children.map(referenceOf), EMPTY_NODE]);
  }
};

/**
 * A trie with hashed keys below a root, of which only some nodes are known. An update that needs another node throws MissingNode,
 * and changes nothing. Writes and removals need the fewest nodes if all writes come first: a branch that loses its last but one
 * child needs the other one. Any method may throw WrongProof, if a node below the root is none.
 */
export class PartialTrie {
  readonly #nodes: TrieNodes;
  #root: TrieNode | undefined;

  constructor(nodes: TrieNodes, root: Uint8Array) {
    this.#nodes = nodes;
    this.#root = Buffer.compare(root, EMPTY_ROOT) === 0 ? undefined : { kind: "unread", hash: root };
  }

  /** The root with all updates. */
  get root(): Uint8Array {
    if (this.#root === undefined) {
      return EMPTY_ROOT;
    }
    return this.#root.kind === "unread" ? this.#root.hash : keccak256(encodeNode(this.#root));
  }

  /** Returns the value under a key of 32 bytes, or undefined if there is none. */
  get(key: Uint8Array): Uint8Array | undefined {
    const digits = nibblesOf(key);
    let node = this.#root;
    let depth = 0;
    while (node !== undefined) {
      const own = this.#nodes.resolve(node, depth);
      if (own.kind === "branch") {
        node = own.children[digitAt(digits, depth)];
        depth++;
        continue;
      }
      if (sharedDigits(own.path, digits, depth) < own.path.length) {
        return undefined;
      }
      if (own.kind === "leaf") {
        return own.value;
      }
      node = own.child;
      depth += own.path.length;
    }
    return undefined;
  }

  /** Writes a value that is not empty under a key of 32 bytes. */
  put(key: Uint8Array, value: Uint8Array): void {
    this.#root = this.#put(this.#root, nibblesOf(key), 0, value);
  }

  /** Removes the value under a key of 32 bytes, if there is one. */
  remove(key: Uint8Array): void {
    this.#root = this.#remove(this.#root, nibblesOf(key), 0);
  }

  #put(node: TrieNode | undefined, key: Uint8Array, depth: number, value: Uint8Array): TrieNode {
    if (node === undefined) {
      return { kind: "leaf", path: key.subarray(depth), value };
    }
    const own = this.#nodes.resolve(node, depth);
    if (own.kind === "branch") {
      const digit = digitAt(key, depth);
      return {
        kind: "branch",
        children: own.children.with(digit, this.#put(own.children[digit], key, depth + 1, value)),
      };
    }
    const shared = sharedDigits(own.path, key, depth);
    if (shared < own.path.length) {
      return fork(own, shared, key.subarray(depth), value);
    }
    return own.kind === "leaf"
      ? { ...own, value }
      : { ...own, child: this.#put(own.child, key, depth + shared, value) };
  }

  /** Returns the node itself if the key is not below it. */
  #remove(node: TrieNode | undefined, key: Uint8Array, depth: number): TrieNode | undefined {
    if (node === undefined) {
      return undefined;
    }
    const own = this.#nodes.resolve(node, depth);
    if (own.kind === "branch") {
      return this.#removeBelow(node, own, key, depth);
    }
    if (sharedDigits(own.path, key, depth) < own.path.length) {
      return node;
    }
    if (own.kind === "leaf") {
      return undefined;
    }
    const below = depth + own.path.length;
    const child = this.#remove(own.child, key, below);
    if (child === undefined) {
      throw new WrongProof("an extension of one leaf");
    }
    return child === own.child ? node : this.#join(own.path, child, below);
  }

  #removeBelow(node: TrieNode, { children }: BranchNode, key: Uint8Array, depth: number): TrieNode | undefined {
    const digit = digitAt(key, depth);
    const child = this.#remove(children[digit], key, depth + 1);
    if (child === children[digit]) {
      return node;
    }
    const changed = children.with(digit, child);
    const [left, ...others] = changed.flatMap((each, at) => (each === undefined ? [] : [{ at, child: each }]));
    if (left === undefined) {
      throw new WrongProof("a branch of one child");
    }
    return child !== undefined || others.length > 0
      ? { kind: "branch", children: changed }
      : this.#join(Uint8Array.of(left.at), left.child, depth + 1);
  }

  /** Returns the one node for a path and the node below it. Only that node itself shows which form that is. */
  #join(path: Uint8Array, node: TrieNode, depth: number): TrieNode {
    const own = this.#nodes.resolve(node, depth);
    return own.kind === "branch"
      ? { kind: "extension", path, child: node }
      : { ...own, path: concatBytes([path, own.path]) };
  }
}
