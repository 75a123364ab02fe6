import { formatData, type Hash } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import { encodeList, encodeNumber } from "./rlp.ts";
import { EMPTY_NODE, EMPTY_ROOT, encodeLeaf, encodePath, nibblesOf, nodeReference } from "./trieEncoding.ts";

const BRANCH_WIDTH = 16;

interface Leaf {
  readonly index: number;
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

interface CachedLeaf {
  readonly index: number;
  readonly depth: number;
  readonly reference: Uint8Array;
}

/** References of leaves by the array of their value, for the roots of a list that grows. */
export type LeafCache = WeakMap<Uint8Array, CachedLeaf>;

interface Trie {
  /** In the order of their keys. */
  readonly leaves: readonly Leaf[];
  readonly cache: LeafCache | undefined;
}

/**
 * Returns the root of the trie with `values[index]` under rlp(index), as in `transactionsRoot` and `receiptsRoot`.
 * No key is a prefix of another, so each node is encoded once, from the leaves up. Source: Yellow Paper, appendix D.
 * `cache`: for several lists that begin with the same arrays.
 */
export const orderedTrieRoot = (values: readonly Uint8Array[], cache?: LeafCache): Hash => {
  if (values.length === 0) {
    return formatData(EMPTY_ROOT);
  }
  // Keys in order: 0x01 to 0x7f, then 0x80 (index zero), then 0x8180 and longer keys.
  const leaves = values.map((value, index) => ({ index, key: keyOf(index), value }));
  const [zero] = leaves.splice(0, 1);
  if (zero !== undefined) {
    leaves.splice(127, 0, zero);
  }
  return formatData(keccak256(encodeNode({ leaves, cache }, 0, leaves.length, 0)));
};

/** Encodes the node over leaves[from..to). Their keys have the first `depth` nibbles in common. */
const encodeNode = (trie: Trie, from: number, to: number, depth: number): Uint8Array => {
  const { leaves } = trie;
  const first = leaves[from];
  const last = leaves[to - 1];
  if (first === undefined || last === undefined) {
    throw new RangeError("a node has at least one leaf");
  }
  if (from === to - 1) {
    return encodeLeaf(encodePath(first.key, depth, first.key.length, true), first.value);
  }
  let fork = depth;
  while (first.key[fork] === last.key[fork]) {
    fork++;
  }
  if (fork > depth) {
    return encodeList([encodePath(first.key, depth, fork, false), nodeReference(encodeNode(trie, from, to, fork))]);
  }
  const children: Uint8Array[] = [];
  let start = from;
  for (let nibble = 0; nibble < BRANCH_WIDTH; nibble++) {
    let end = start;
    while (end < to && leaves[end]?.key[depth] === nibble) {
      end++;
    }
    children.push(end === start ? EMPTY_NODE : childReference(trie, start, end, depth + 1));
    start = end;
  }
  children.push(EMPTY_NODE);
  return encodeList(children);
};

const childReference = (trie: Trie, from: number, to: number, depth: number): Uint8Array => {
  const { leaves, cache } = trie;
  const leaf = to === from + 1 ? leaves[from] : undefined;
  if (cache === undefined || leaf === undefined) {
    return nodeReference(encodeNode(trie, from, to, depth));
  }
  const cached = cache.get(leaf.value);
  if (cached?.index === leaf.index && cached.depth === depth) {
    return cached.reference;
  }
  const created = nodeReference(encodeNode(trie, from, to, depth));
  cache.set(leaf.value, { index: leaf.index, depth, reference: created });
  return created;
};

/** Returns the nibbles of rlp(index). */
const keyOf = (index: number): Uint8Array => nibblesOf(encodeNumber(index));
