import { type Data, formatData, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { encodeBytes, encodeList, encodeNumber, stripZeros } from "../../../src/ethereum/rlp.ts";
import { EMITTER, EMITTER_CODE } from "./emitter.ts";

/** The tries of one state: that of the state has one account, the emitter, and that of its storage one slot. */
export interface EmitterProof {
  readonly stateRoot: Hash;
  readonly storageHash: Hash;
  readonly accountProof: readonly Data[];
  /** Of each slot. */
  readonly slotProof: readonly Data[];
}

export const EMITTER_CODE_HASH: Hash = keccak256Hex(parseData(EMITTER_CODE));
const EMITTER_KEY = keccak256(parseData(EMITTER));
const SLOT_KEY = keccak256(new Uint8Array(32));
const EMPTY_TRIE = Uint8Array.of(0x80);
/** The prefix of a leaf's path of even length (Yellow Paper, appendix C). */
const LEAF = 0x20;

/** A trie with one value: its root is a leaf. */
const onlyLeaf = (key: Uint8Array, value: Uint8Array): Uint8Array =>
  encodeList([encodeBytes(Uint8Array.of(LEAF, ...key)), encodeBytes(value)]);

/** Proves the emitter without balance and nonce, with this word in slot 0. */
export const proveEmitter = (slot: Hash): EmitterProof => {
  const word = stripZeros(parseData(slot));
  const storage = word.length === 0 ? EMPTY_TRIE : onlyLeaf(SLOT_KEY, encodeBytes(word));
  const root = keccak256(storage);
  const fields = [encodeNumber(0), encodeNumber(0), encodeBytes(root), encodeBytes(parseData(EMITTER_CODE_HASH))];
  const account = onlyLeaf(EMITTER_KEY, encodeList(fields));
  return {
    stateRoot: keccak256Hex(account),
    storageHash: formatData(root),
    accountProof: [formatData(account)],
    slotProof: word.length === 0 ? [] : [formatData(storage)],
  };
};
