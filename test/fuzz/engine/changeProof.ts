import { type Data, formatData, isData, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256 } from "../../../src/ethereum/keccak.ts";
import { mutateBytes } from "./mutateBytes.ts";
import { mutateJson } from "./mutateJson.ts";
import type { Choices } from "./random.ts";

const HASH_BYTES = 32;

/** Whether a node of a proof lies outside its parent, so that the list needs it. The first one always does. */
export const isOutside = (node: Data, index: number): boolean => index === 0 || node.length >= 2 + 2 * HASH_BYTES;

export interface ChangedProof {
  readonly nodes: readonly Data[];
  /** No right reader accepts the nodes below the root. Otherwise, they may still prove the same. */
  readonly mustRefuse?: boolean;
}

/** Changes a proof. `other`: a right one of another key of the same trie. */
type ChangeProof = (proof: readonly Data[], other: readonly Data[], choices: Choices) => ChangedProof;

const withoutNode: ChangeProof = (proof, _, choices) => {
  const at = choices.below(proof.length);
  const node = proof[at];
  return { nodes: proof.toSpliced(at, 1), mustRefuse: node !== undefined && isOutside(node, at) };
};

const withSurplus: ChangeProof = (proof, other, choices) => {
  const node = choices.pick([...proof, ...other, "0xc0" as const]);
  const at = choices.below(proof.length + 1);
  return { nodes: proof.toSpliced(at, 0, node), mustRefuse: isOutside(node, 1) };
};

const withChangedBytes: ChangeProof = (proof, _, choices) => {
  const at = choices.below(proof.length);
  const node = proof[at];
  return { nodes: node === undefined ? [] : proof.with(at, formatData(mutateBytes(parseData(node), choices))) };
};

const withChangedList: ChangeProof = (proof, other, choices) => {
  const changed: unknown = mutateJson(choices.chance(0.5) ? [...proof] : [...proof, ...other.slice(0, 2)], choices);
  return { nodes: Array.isArray(changed) ? changed.filter(isData) : [] };
};

/** Changes the bytes of a node, and the hash of each changed node in its parent: only the form of the nodes shows the change. */
const withRightHashes: ChangeProof = (proof, _, choices) => {
  const nodes = proof.filter(isOutside).map(parseData);
  const at = choices.below(nodes.length);
  let child = nodes[at];
  if (child === undefined) {
    return { nodes: [] };
  }
  let childHash = keccak256(child);
  child = mutateBytes(child, choices);
  nodes[at] = child;
  for (let index = at - 1; index >= 0; index--) {
    const parent = Buffer.from(nodes[index] ?? []);
    const parentHash = keccak256(parent);
    parent.set(keccak256(child), parent.indexOf(childHash));
    nodes[index] = parent;
    [child, childHash] = [parent, parentHash];
  }
  return { nodes: nodes.map(formatData) };
};

/** By the name of what changes. */
export const PROOF_CHANGES: Readonly<Record<string, ChangeProof>> = {
  "other key": (_, other) => ({ nodes: other }),
  "missing node": withoutNode,
  "surplus node": withSurplus,
  bytes: withChangedBytes,
  list: withChangedList,
  "bytes and hashes": withRightHashes,
};
