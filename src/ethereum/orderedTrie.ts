import { formatData, type Hash } from "./hex.ts";
import { keccak256 } from "./keccak.ts";
import { bytesLength, encodeBytes, encodeList, encodeNumber, listLength, writePrefix } from "./rlp.ts";

const EMPTY_STRING = encodeBytes(new Uint8Array(0));
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
    return formatData(keccak256(EMPTY_STRING));
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
    return encodeLeaf(path(first.key, depth, first.key.length, true), first.value);
  }
  let fork = depth;
  while (first.key[fork] === last.key[fork]) {
    fork++;
  }
  if (fork > depth) {
    return encodeList([path(first.key, depth, fork, false), reference(encodeNode(trie, from, to, fork))]);
  }
  const children: Uint8Array[] = [];
  let start = from;
  for (let nibble = 0; nibble < BRANCH_WIDTH; nibble++) {
    let end = start;
    while (end < to && leaves[end]?.key[depth] === nibble) {
      end++;
    }
    children.push(end === start ? EMPTY_STRING : childReference(trie, start, end, depth + 1));
    start = end;
  }
  children.push(EMPTY_STRING);
  return encodeList(children);
};

/** Writes the value once: it is most of the node. */
const encodeLeaf = (encodedPath: Uint8Array, value: Uint8Array): Uint8Array => {
  const length = encodedPath.length + bytesLength(value);
  const encoded = new Uint8Array(listLength(length));
  const at = writePrefix(encoded, 0, length, 0xc0);
  encoded.set(encodedPath, at);
  const valueAt = at + encodedPath.length;
  const isOwnEncoding = bytesLength(value) === 1 && value.length === 1;
  encoded.set(value, isOwnEncoding ? valueAt : writePrefix(encoded, valueAt, value.length, 0x80));
  return encoded;
};

const childReference = (trie: Trie, from: number, to: number, depth: number): Uint8Array => {
  const { leaves, cache } = trie;
  const leaf = to === from + 1 ? leaves[from] : undefined;
  if (cache === undefined || leaf === undefined) {
    return reference(encodeNode(trie, from, to, depth));
  }
  const cached = cache.get(leaf.value);
  if (cached?.index === leaf.index && cached.depth === depth) {
    return cached.reference;
  }
  const created = reference(encodeNode(trie, from, to, depth));
  cache.set(leaf.value, { index: leaf.index, depth, reference: created });
  return created;
};

/** Returns a node's reference in its parent: its hash, or the node itself if it is shorter than a hash. */
const reference = (encoded: Uint8Array): Uint8Array =>
  encoded.length < 32 ? encoded : encodeBytes(keccak256(encoded));

/** Returns the hex-prefix encoding of key[from..to). Source: Yellow Paper, appendix C. */
const path = (key: Uint8Array, from: number, to: number, isLeaf: boolean): Uint8Array => {
  const isOdd = (to - from) % 2 === 1;
  const flag = (isLeaf ? 2 : 0) + (isOdd ? 1 : 0);
  const bytes = new Uint8Array(1 + ((to - from) >> 1));
  bytes[0] = flag * 16 + (isOdd ? (key[from] ?? 0) : 0);
  for (let at = isOdd ? from + 1 : from, into = 1; at < to; at += 2, into++) {
    bytes[into] = (key[at] ?? 0) * 16 + (key[at + 1] ?? 0);
  }
  return encodeBytes(bytes);
};

/** Returns the nibbles of rlp(index). */
const keyOf = (index: number): Uint8Array => nibbles(encodeNumber(index));

const nibbles = (bytes: Uint8Array): Uint8Array => {
  const digits = new Uint8Array(bytes.length * 2);
  bytes.forEach((byte, at) => {
    digits[at * 2] = byte >> 4;
    digits[at * 2 + 1] = byte & 15;
  });
  return digits;
};
