import { type Address, formatQuantity, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import type { ProofResponse } from "../../support/builders/provenState.ts";
import { SecureTrie } from "../state/secureTrie.ts";
import { wordOf, ZERO_WORD } from "../state/stateKeys.ts";
import { EMITTER, EMITTER_CODE } from "./emitter.ts";

const CODE_HASH: Hash = keccak256Hex(parseData(EMITTER_CODE));

/** Returns the tries of one state: that of the state has one account, the emitter, and that of its storage slot 0 with this word. */
const triesOf = (word: Hash): { readonly state: SecureTrie; readonly storage: SecureTrie } => {
  const storage = new SecureTrie(word === ZERO_WORD ? [] : [[ZERO_WORD, encodeNumber(BigInt(word))]]);
  const hashes = [storage.root, CODE_HASH].map((hash) => encodeBytes(parseData(hash)));
  return { state: new SecureTrie([[EMITTER, encodeList([encodeNumber(0), encodeNumber(0), ...hashes])]]), storage };
};

export const emitterRoot = (word: Hash): Hash => triesOf(word).state.root;

/** Answers eth_getProof. Undefined: another account, which is not in the state trie. */
export const proofOfEmitter = (word: Hash, address: Address, slots: readonly string[]): ProofResponse | undefined => {
  if (address !== EMITTER) {
    return undefined;
  }
  const { state, storage } = triesOf(word);
  return {
    ...{ address, accountProof: state.proofOf(address), balance: "0x0", codeHash: CODE_HASH, nonce: "0x0" },
    storageHash: storage.root,
    storageProof: slots.map((key) => {
      const slot = wordOf(BigInt(key));
      return { key, value: formatQuantity(slot === ZERO_WORD ? BigInt(word) : 0n), proof: storage.proofOf(slot) };
    }),
  };
};
