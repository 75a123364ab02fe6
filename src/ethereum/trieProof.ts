// Proofs of a Merkle Patricia trie with hashed keys (Yellow Paper, appendix D), as in EIP-1186.

import { type Data, parseData } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import { EMPTY_NODE, EMPTY_ROOT } from "./trieEncoding.ts";
import { formOf, inlineItems, nibbleAt, type Path, type RlpItem, readNode, stringOf, WrongProof } from "./trieNode.ts";

const isEqual = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

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
  readonly items: readonly RlpItem[];
}

/** The nodes of a proof in the order of their use. */
class NodeList {
  readonly #nodes: readonly ProofNode[];
  #next = 0;

  constructor(nodes: readonly ProofNode[]) {
    this.#nodes = nodes;
  }

  /** Returns the next node, which must have that hash. */
  take(hash: Uint8Array): readonly RlpItem[] {
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
type Step = { readonly child: RlpItem; readonly depth: number } | { readonly value: Uint8Array | undefined };

const inBranch = (children: readonly RlpItem[], key: Uint8Array, depth: number): Step => {
  const child = children[nibbleAt(key, depth)];
  if (child === undefined || depth >= key.length * 2) {
    throw new WrongProof("not a branch");
  }
  return child.encoded[0] === EMPTY_NODE[0] ? { value: undefined } : { child, depth: depth + 1 };
};

const onPath = (path: Path, child: RlpItem, key: Uint8Array, depth: number): Step => {
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

const step = (items: readonly RlpItem[], key: Uint8Array, depth: number): Step => {
  const form = formOf(items);
  return "children" in form ? inBranch(form.children, key, depth) : onPath(form.path, form.end, key, depth);
};

const follow = (nodes: NodeList, child: RlpItem): readonly RlpItem[] => {
  const inline = inlineItems(child);
  if (inline === undefined) {
    return nodes.take(child.bytes);
  }
  nodes.skip(child.encoded);
  return inline;
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
    const value = isEqual(root, EMPTY_ROOT) ? undefined : walk(list, root, key);
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
