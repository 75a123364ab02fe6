// Decoding of the nodes of a Merkle Patricia trie (Yellow Paper, appendix D).

/** The nodes do not prove what the trie of that root has under the key. */
export class WrongProof extends Error {
  override readonly name = "WrongProof";
}

/** One item of an RLP list. `bytes`: its payload. `encoded`: with its prefix. */
export interface RlpItem {
  readonly isList: boolean;
  readonly bytes: Uint8Array;
  readonly encoded: Uint8Array;
}

/** The items of a branch: its children, and its own value. */
const BRANCH_ITEMS = 17;
export const BRANCH_WIDTH = 16;
export const HASH_BYTES = 32;
const MAX_SHORT = 55;

/** Reads the item at `at`. Throws WrongProof if it is not the one RLP encoding of its payload, or too long for `bytes`. */
const readItem = (bytes: Uint8Array, at: number): RlpItem => {
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

const readWhole = (bytes: Uint8Array): RlpItem => {
  const item = bytes.length === 0 ? undefined : readItem(bytes, 0);
  if (item?.encoded.length !== bytes.length) {
    throw new WrongProof("bytes after an item");
  }
  return item;
};

/** Returns the items of a list's payload. */
const itemsIn = (payload: Uint8Array): readonly RlpItem[] => {
  const items: RlpItem[] = [];
  for (let at = 0; at < payload.length; ) {
    const item = readItem(payload, at);
    items.push(item);
    at += item.encoded.length;
  }
  return items;
};

export const readNode = (encoded: Uint8Array): readonly RlpItem[] => {
  const { isList, bytes } = readWhole(encoded);
  if (!isList) {
    throw new WrongProof("a node is no list");
  }
  return itemsIn(bytes);
};

export const stringOf = ({ isList, bytes }: RlpItem): Uint8Array => {
  if (isList) {
    throw new WrongProof("a list instead of a string");
  }
  return bytes;
};

/** Decodes an RLP string that fills `bytes`. Throws WrongProof. */
export const decodeString = (bytes: Uint8Array): Uint8Array => stringOf(readWhole(bytes));

/** Decodes an RLP list of strings that fills `bytes`. Throws WrongProof. */
export const decodeStrings = (bytes: Uint8Array): readonly Uint8Array[] => readNode(bytes).map(stringOf);

export const nibbleAt = (key: Uint8Array, at: number): number => {
  const byte = key[at >> 1] ?? 0;
  return at % 2 === 0 ? byte >> 4 : byte & 15;
};

/** The hex-prefix path of a leaf or an extension. Source: Yellow Paper, appendix C. */
export interface Path {
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

/** A branch with its children by digit, the last item aside; or a path with what is at its end: a value, or a node. */
export type NodeForm = { readonly children: readonly RlpItem[] } | { readonly path: Path; readonly end: RlpItem };

/** Returns the form of a node. Throws WrongProof if it has none of a trie whose keys have one length: no value ends in a branch. */
export const formOf = (items: readonly RlpItem[]): NodeForm => {
  if (items.length === BRANCH_ITEMS) {
    const own = items[BRANCH_WIDTH];
    if (own === undefined || stringOf(own).length > 0) {
      throw new WrongProof("a value in a branch");
    }
    return { children: items };
  }
  const [first, second] = items;
  if (items.length !== 2 || first === undefined || second === undefined) {
    throw new WrongProof("neither a branch nor a path");
  }
  return { path: readPath(stringOf(first)), end: second };
};

/** Returns the items of a child that lies inside its parent. Undefined if the parent has another reference to it. */
export const inlineItems = ({ isList, bytes, encoded }: RlpItem): readonly RlpItem[] | undefined => {
  if (isList && encoded.length >= HASH_BYTES) {
    throw new WrongProof("a long node inside its parent");
  }
  return isList ? itemsIn(bytes) : undefined;
};
