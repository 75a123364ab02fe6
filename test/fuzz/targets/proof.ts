import { createMPT, type MerklePatriciaTrie, verifyMPTWithMerkleProof } from "@ethereumjs/mpt";
import { type Data, formatData, isData, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256 } from "../../../src/ethereum/keccak.ts";
import { WrongProof } from "../../../src/ethereum/trieNode.ts";
import { TrieProofs } from "../../../src/ethereum/trieProof.ts";
import { nodesOnPath } from "../../support/builders/provenState.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import { mutateJson } from "../engine/mutateJson.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";
import { nextKey, randomBytes } from "../engine/trieKeys.ts";

const MAX_KEYS = 24;
/** Keys that are read from one trie. */
const KEYS_OF_TRIE = 10;
const VALUE_BYTES = [1, 1, 2, 20, 31, 32, 33, 70];

interface KnownTrie {
  readonly trie: MerklePatriciaTrie;
  readonly keys: readonly Uint8Array[];
  readonly values: ReadonlyMap<string, Uint8Array>;
}

const createKnownTrie = async (choices: Choices): Promise<KnownTrie> => {
  const trie = await createMPT({ useRootPersistence: false });
  const keys: Uint8Array[] = [];
  const values = new Map<string, Uint8Array>();
  for (let count = choices.below(MAX_KEYS); count > 0; count--) {
    const key = nextKey(keys, choices);
    const value = randomBytes(choices.pick(VALUE_BYTES), choices).map((byte) => byte | 1);
    keys.push(key);
    values.set(formatData(key), value);
    await trie.put(key, value);
  }
  return { trie, keys, values };
};

const textOf = (value: Uint8Array | null | undefined): string => (value ? formatData(value) : "nothing");

/** Returns the value that we read out of a proof, or undefined if we refuse it. Any other error is a fault. */
const readOwn = (root: Uint8Array, key: Uint8Array, proof: readonly Data[]): string | undefined => {
  try {
    return textOf(new TrieProofs().read(root, key, proof));
  } catch (error) {
    if (error instanceof WrongProof) {
      return undefined;
    }
    throw new Finding(
      `not WrongProof: ${String(error)}`,
      { root: formatData(root), key: formatData(key), proof },
      error,
    );
  }
};

const readLibrary = async (
  trie: MerklePatriciaTrie,
  key: Uint8Array,
  proof: readonly Data[],
): Promise<string | undefined> => {
  try {
    const value = await verifyMPTWithMerkleProof(trie, trie.root(), key, proof.map(parseData));
    return textOf(value);
  } catch {
    return undefined;
  }
};

const mutate = (proof: readonly Data[], other: readonly Data[], choices: Choices): readonly Data[] => {
  if (choices.chance(0.2)) {
    return other;
  }
  if (choices.chance(0.3)) {
    const changed: unknown = mutateJson([...proof, ...other.slice(0, 2)], choices);
    return Array.isArray(changed) ? changed.filter(isData) : [];
  }
  const at = choices.below(proof.length + 1);
  const node = proof[at];
  return node === undefined
    ? [...proof, ...other.slice(-1)]
    : proof.with(at, formatData(mutateBytes(parseData(node), choices)));
};

/** A right proof has the value of the trie. A changed one is refused, or still has that value; the library does not contradict it. */
const checkKey = async ({ trie, keys, values }: KnownTrie, choices: Choices): Promise<void> => {
  const root = trie.root();
  const key = keys.length > 0 && choices.chance(0.5) ? choices.pick(keys) : nextKey(keys, choices);
  const truth = textOf(values.get(formatData(key)));
  const proof = keys.length === 0 ? [] : await nodesOnPath(trie, key, choices.chance(0.5));
  const input = { root: formatData(root), key: formatData(key), proof };
  const own = readOwn(root, key, proof);
  if (own !== truth) {
    throw new Finding(`${own} instead of ${truth}`, input);
  }
  const library = keys.length === 0 ? truth : await readLibrary(trie, key, proof);
  if (library !== truth) {
    throw new Finding(`the library reads ${library} instead of ${truth}`, input);
  }
  const other = keys.length === 0 ? [] : await nodesOnPath(trie, nextKey(keys, choices), choices.chance(0.5));
  const changed = mutate(proof, other, choices);
  const read = readOwn(root, key, changed);
  if (read !== undefined && read !== truth) {
    throw new Finding(`a changed proof has ${read} instead of ${truth}`, { ...input, changed });
  }
  // Below the hash of its own first node, a node of any form is read. There must only be no other error.
  const [first] = changed;
  if (first !== undefined) {
    readOwn(keccak256(parseData(first)), key, changed);
  }
};

/** Proofs of tries, right and changed, compared with the trie and with the library's verifier. */
export const createTarget: CreateTarget = async () => ({
  folders: ["ethereum/trieProof"],
  run: async (choices) => {
    const known = await createKnownTrie(choices);
    for (let count = 0; count < KEYS_OF_TRIE; count++) {
      await checkKey(known, choices);
    }
  },
});
