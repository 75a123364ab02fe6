import {
  BranchMPTNode,
  createMPT,
  decodeMPTNode,
  LeafMPTNode,
  type MerklePatriciaTrie,
  verifyMPTWithMerkleProof,
} from "@ethereumjs/mpt";
import { type Data, formatData, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256 } from "../../../src/ethereum/keccak.ts";
import { WrongProof } from "../../../src/ethereum/trieNode.ts";
import { TrieProofs } from "../../../src/ethereum/trieProof.ts";
import { nodesOnPath } from "../../support/builders/provenState.ts";
import { isOutside, PROOF_CHANGES } from "../engine/changeProof.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";
import { nextKey, randomBytes } from "../engine/trieKeys.ts";

const MAX_KEYS = 24;
/** Keys that are read from one trie. */
const KEYS_OF_TRIE = 10;
const CHANGES_OF_PROOF = 11;
const CHANGES = Object.entries(PROOF_CHANGES);
const VALUE_BYTES = [1, 1, 2, 20, 31, 32, 33, 70];
const NOTHING = "nothing";

/** The judge. It hashes with another library than ours. Only the tries of which proofs are made hash with ours, which is fast. */
const library = await createMPT();

interface KnownTrie {
  readonly trie: MerklePatriciaTrie;
  readonly keys: readonly Uint8Array[];
  readonly values: ReadonlyMap<string, Uint8Array>;
}

/** A proof of what a trie has under a key. */
interface RightProof {
  readonly root: Uint8Array;
  readonly key: Uint8Array;
  readonly truth: string;
  readonly proof: readonly Data[];
  /** What the proof shows, for the counts. */
  readonly forms: readonly string[];
}

const createKnownTrie = async (choices: Choices): Promise<KnownTrie> => {
  const trie = await createMPT({ useRootPersistence: false, useKeyHashingFunction: keccak256 });
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

const textOf = (value: Uint8Array | null | undefined): string => (value ? formatData(value) : NOTHING);

const formOf = (truth: string, nodes: readonly Data[]): string => {
  const last = nodes.at(-1);
  if (last === undefined || truth !== NOTHING) {
    return last === undefined ? "empty trie" : "present";
  }
  const node = decodeMPTNode(parseData(last));
  if (node instanceof BranchMPTNode) {
    return "absent at an empty place";
  }
  return node instanceof LeafMPTNode ? "absent at another leaf" : "absent at another extension";
};

const createProof = async ({ trie, keys, values }: KnownTrie, choices: Choices): Promise<RightProof> => {
  const key = keys.length > 0 && choices.chance(0.5) ? choices.pick(keys) : nextKey(keys, choices);
  const truth = textOf(values.get(formatData(key)));
  const nodes = keys.length === 0 ? [] : await nodesOnPath(trie, key, true);
  const outside = nodes.filter(isOutside);
  return {
    ...{ root: trie.root(), key, truth, proof: choices.chance(0.5) ? nodes : outside },
    forms: [formOf(truth, nodes), ...(outside.length < nodes.length ? ["node inside its parent"] : [])],
  };
};

/** Returns the value that we read out of a proof, or undefined if we refuse it. Any other error is a fault. */
const readOwn = (proofs: TrieProofs, root: Uint8Array, key: Uint8Array, nodes: readonly Data[]): string | undefined => {
  try {
    return textOf(proofs.read(root, key, nodes));
  } catch (error) {
    if (error instanceof WrongProof) {
      return undefined;
    }
    throw new Finding(
      `not WrongProof: ${String(error)}`,
      { root: formatData(root), key: formatData(key), nodes },
      error,
    );
  }
};

const readLibrary = async (root: Uint8Array, key: Uint8Array, nodes: readonly Data[]): Promise<string | undefined> => {
  try {
    return textOf(await verifyMPTWithMerkleProof(library, root, key, nodes.map(parseData)));
  } catch {
    return undefined;
  }
};

const inputOf = ({ root, key, truth, proof }: RightProof, changed: object = {}): object => ({
  ...{ root: formatData(root), key: formatData(key), truth, proof },
  ...changed,
});

/** A right proof has the value of the trie, as the library reads it. */
const checkRight = async (right: RightProof): Promise<void> => {
  const { root, key, truth, proof } = right;
  const own = readOwn(new TrieProofs(), root, key, proof);
  if (own !== truth) {
    throw new Finding(`${own} instead of ${truth}`, inputOf(right));
  }
  const judged = proof.length === 0 ? truth : await readLibrary(root, key, proof);
  if (judged !== truth) {
    throw new Finding(`the library reads ${judged} instead of ${truth}`, inputOf(right));
  }
};

/**
 * Below the hash of its own first node, a node of any form is read. What we read there, the library reads too.
 * It refuses more: it decodes nodes inside a parent that are not on the path of the key.
 */
const readBelowFirst = async (
  proofs: TrieProofs,
  right: RightProof,
  nodes: readonly Data[],
): Promise<string | undefined> => {
  const root = keccak256(parseData(nodes[0] ?? "0x"));
  const own = readOwn(proofs, root, right.key, nodes);
  const judged = own === undefined ? undefined : await readLibrary(root, right.key, nodes);
  if (judged !== undefined && own !== judged) {
    throw new Finding(`below its first node, ${own} instead of ${judged}`, inputOf(right, { nodes }));
  }
  return own;
};

/** Counts of a run, by what was checked. */
class Counts {
  readonly #counts = new Map<string, number>();

  add(...names: readonly string[]): void {
    for (const name of names) {
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    }
  }

  read(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].sort(([one], [other]) => (one < other ? -1 : 1)));
  }
}

/** A changed proof is refused, or still has the value of the trie. */
const checkChanged = async (
  right: RightProof,
  { proofs, other, choices, counts }: { proofs: TrieProofs; other: RightProof; choices: Choices; counts: Counts },
): Promise<void> => {
  const { root, key, truth, proof } = right;
  const [name, change] = choices.pick(CHANGES);
  const { nodes, mustRefuse = false } = change(proof, other.proof, choices);
  if (nodes.join() === proof.join()) {
    return;
  }
  const read = readOwn(proofs, root, key, nodes);
  if (read !== undefined && (read !== truth || mustRefuse)) {
    throw new Finding(`${name}: a changed proof has ${read}, and the trie ${truth}`, inputOf(right, { nodes }));
  }
  const below = nodes[0] === proof[0] ? read : await readBelowFirst(proofs, right, nodes);
  counts.add("mutated", `mutated, ${name}: ${below === undefined ? "refused" : "equal"}`);
};

/** Proofs of tries, right and changed, compared with the trie and with the library's verifier. */
export const createTarget: CreateTarget = async () => {
  const counts = new Counts();
  return {
    counts: () => counts.read(),
    run: async (choices) => {
      const known = await createKnownTrie(choices);
      const proofs = new TrieProofs();
      const rights: RightProof[] = [];
      for (let count = 0; count < KEYS_OF_TRIE; count++) {
        const right = await createProof(known, choices);
        await checkRight(right);
        counts.add("right", ...right.forms.map((form) => `right, ${form}`));
        rights.push(right);
      }
      for (const right of rights) {
        for (let count = 0; count < CHANGES_OF_PROOF; count++) {
          await checkChanged(right, { proofs, other: choices.pick(rights), choices, counts });
        }
      }
    },
  };
};
