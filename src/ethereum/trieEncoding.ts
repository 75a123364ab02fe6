// Encoding of the nodes of a Merkle Patricia trie (Yellow Paper, appendices C and D).

import { keccak256 } from "./keccak.ts";
import { bytesLength, encodeBytes, listLength, writePrefix } from "./rlp.ts";

/** The bytes of an empty place in a branch, and of the empty trie. */
export const EMPTY_NODE = encodeBytes(new Uint8Array(0));
export const EMPTY_ROOT = keccak256(EMPTY_NODE);

/** Writes the value once: it is most of the node. */
export const encodeLeaf = (encodedPath: Uint8Array, value: Uint8Array): Uint8Array => {
  const length = encodedPath.length + bytesLength(value);
  const encoded = new Uint8Array(listLength(length));
  const at = writePrefix(encoded, 0, length, 0xc0);
  encoded.set(encodedPath, at);
  const valueAt = at + encodedPath.length;
  const isOwnEncoding = bytesLength(value) === 1 && value.length === 1;
  encoded.set(value, isOwnEncoding ? valueAt : writePrefix(encoded, valueAt, value.length, 0x80));
  return encoded;
};

/** Returns a node's reference in its parent: its hash, or the node itself if it is shorter than a hash. */
export const nodeReference = (encoded: Uint8Array): Uint8Array =>
  encoded.length < 32 ? encoded : encodeBytes(keccak256(encoded));

/** Returns the hex-prefix encoding of key[from..to). Source: Yellow Paper, appendix C. */
export const encodePath = (key: Uint8Array, from: number, to: number, isLeaf: boolean): Uint8Array => {
  const isOdd = (to - from) % 2 === 1;
  const flag = (isLeaf ? 2 : 0) + (isOdd ? 1 : 0);
  const bytes = new Uint8Array(1 + ((to - from) >> 1));
  bytes[0] = flag * 16 + (isOdd ? (key[from] ?? 0) : 0);
  for (let at = isOdd ? from + 1 : from, into = 1; at < to; at += 2, into++) {
    bytes[into] = (key[at] ?? 0) * 16 + (key[at + 1] ?? 0);
  }
  return encodeBytes(bytes);
};

/** Returns the digits of bytes in base 16. */
export const nibblesOf = (bytes: Uint8Array): Uint8Array => {
  const digits = new Uint8Array(bytes.length * 2);
  bytes.forEach((byte, at) => {
    digits[at * 2] = byte >> 4;
    digits[at * 2 + 1] = byte & 15;
  });
  return digits;
};
