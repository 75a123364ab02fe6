import { createMPT } from "@ethereumjs/mpt";
import { type Address, type Data, formatData, type Hash, isData, parseData } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../../src/ethereum/keccak.ts";
import { MissingNode, PartialTrie, TrieNodes } from "../../../src/ethereum/partialTrie.ts";
import { unpackWrites } from "../../../src/state/store/packedWrites.ts";
import type { AccountWrites, BlockWrites } from "../../../src/state/writeSet.ts";
import { nodesOnPath, type ProvenStateAccount } from "../../support/builders/provenState.ts";
import {
  addressAt,
  codeHashAt,
  createWitnessCase,
  fullClaim,
  proveWith,
  slot,
  type WitnessCase,
  type World,
  witnessJobOf,
  wrongAfter,
} from "../../support/state/witnessCase.ts";
import { LIES, withLie } from "../../support/state/witnessLies.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import { mutateJson } from "../engine/mutateJson.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";
import { nextKey, randomBytes } from "../engine/trieKeys.ts";

const MAX_KEYS = 24;
const MAX_UPDATES = 12;
const VALUE_BYTES = [1, 1, 2, 20, 32, 33, 70];
const ADDRESSES = 14;
const SLOTS = 12;
const LIES_OF_CASE = 12;

/** Updates of a trie have the root that the library computes, or stop at a node that is not there. */
const checkTrie = async (choices: Choices): Promise<void> => {
  const trie = await createMPT({ useRootPersistence: false });
  const keys: Uint8Array[] = [];
  for (let count = choices.below(MAX_KEYS); count > 0; count--) {
    const key = nextKey(keys, choices);
    keys.push(key);
    await trie.put(
      key,
      randomBytes(choices.pick(VALUE_BYTES), choices).map((byte) => byte | 1),
    );
  }
  const root = trie.root();
  const all = new Set<Data>();
  for (const key of keys) {
    for (const node of await nodesOnPath(trie, key)) {
      all.add(node);
    }
  }
  const isComplete = choices.chance(0.6);
  const nodes = [...all].filter(() => isComplete || choices.chance(0.8)).map(parseData);
  const partial = new PartialTrie(new TrieNodes(nodes), root);
  const updates: string[] = [];
  const input = () => ({ root: formatData(root), keys: keys.map(formatData), nodes: nodes.map(formatData), updates });
  let isWhole = true;
  for (let count = choices.below(MAX_UPDATES); count > 0; count--) {
    const key = keys.length > 0 && choices.chance(0.6) ? choices.pick(keys) : nextKey(keys, choices);
    const value = choices.chance(0.5)
      ? undefined
      : randomBytes(choices.pick(VALUE_BYTES), choices).map((byte) => byte | 1);
    updates.push(`${formatData(key)} ${value === undefined ? "" : formatData(value)}`);
    try {
      if (value === undefined) {
        partial.remove(key);
      } else {
        partial.put(key, value);
      }
    } catch (error) {
      if (!(error instanceof MissingNode) || isComplete) {
        throw new Finding(`an update failed: ${String(error)}`, input(), error);
      }
      isWhole = false;
      break;
    }
    if (value === undefined) {
      await trie.del(key);
    } else {
      await trie.put(key, value);
    }
  }
  if (isWhole && formatData(partial.root) !== formatData(trie.root())) {
    throw new Finding(`${formatData(partial.root)} instead of ${formatData(trie.root())}`, input());
  }
  for (const key of isWhole && isComplete ? keys : []) {
    const [own, truth] = [partial.get(key), await trie.get(key)];
    if (own?.toHex() !== (truth ?? undefined)?.toHex()) {
      throw new Finding("another value than the library", { ...input(), key: formatData(key) });
    }
  }
};

const randomAmount = (choices: Choices): bigint =>
  choices.pick([0n, 0n, 1n, 127n, 128n, 10n ** 18n]) + BigInt(choices.below(2));

const randomAccount = (choices: Choices): ProvenStateAccount => ({
  nonce: BigInt(choices.below(3)),
  balance: randomAmount(choices),
  codeHash: choices.chance(0.5) ? EMPTY_CODE_HASH : codeHashAt(choices.below(4)),
  slots: new Map(
    Array.from({ length: choices.chance(0.5) ? 0 : choices.below(SLOTS) }, () => [
      slot(choices.below(SLOTS)),
      1n + randomAmount(choices),
    ]),
  ),
});

const isThere = ({ nonce, balance, codeHash }: ProvenStateAccount): boolean =>
  nonce > 0n || balance > 0n || codeHash !== EMPTY_CODE_HASH;

const changedAccount = (account: ProvenStateAccount, choices: Choices): ProvenStateAccount => {
  const slots = new Map(account.slots);
  for (let count = choices.below(4); count > 0; count--) {
    const key: Hash = slot(choices.below(SLOTS));
    if (choices.chance(0.5)) {
      slots.delete(key);
    } else {
      slots.set(key, 1n + randomAmount(choices));
    }
  }
  return {
    nonce: choices.chance(0.5) ? account.nonce : account.nonce + 1n,
    balance: choices.chance(0.5) ? account.balance : randomAmount(choices),
    codeHash: choices.chance(0.8) ? account.codeHash : codeHashAt(choices.below(4)),
    slots,
  };
};

const randomWorld = (choices: Choices): World =>
  new Map(
    Array.from(
      { length: choices.below(ADDRESSES) },
      () => [addressAt(choices.below(ADDRESSES)), randomAccount(choices)] as const,
    ).filter(([, account]) => isThere(account)),
  );

const nextWorld = (before: World, choices: Choices): World => {
  const after = new Map(before);
  for (let count = choices.below(5); count > 0; count--) {
    const address = addressAt(choices.below(ADDRESSES));
    const account = after.get(address);
    const next =
      account === undefined || choices.chance(0.1) ? randomAccount(choices) : changedAccount(account, choices);
    if (isThere(next) && choices.chance(0.85)) {
      after.set(address, next);
    } else {
      after.delete(address);
    }
  }
  return after;
};

/** What a trace leaves open: single fields, all of an account, and accounts that the block did not touch. */
const withOpen = (claim: BlockWrites, choices: Choices): BlockWrites => {
  const open = new Map(claim);
  for (let count = choices.below(4); count > 0; count--) {
    const address = addressAt(choices.below(ADDRESSES));
    const writes = open.get(address) ?? { slots: new Map() };
    const opened: readonly AccountWrites[] = [
      { ...writes, balance: "unknown" },
      { ...writes, otherSlots: "unknown", slots: new Map() },
      { ...writes, otherSlots: "unknown" },
      { balance: "unknown", nonce: "unknown", code: "unknown", otherSlots: "unknown", slots: new Map() },
    ];
    open.set(address, choices.pick(opened));
  }
  return open;
};

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    each instanceof Map
      ? [...each]
      : typeof each === "bigint"
        ? `${each}n`
        : each instanceof Uint8Array
          ? each.toHex()
          : each,
  );

const inputOf = ({ before, after }: WitnessCase, claim: BlockWrites, name: string): string =>
  textOf({ name, before, after, claim });

/** Proves a claim. A proven one must be right. */
const prove = async (
  witnessed: WitnessCase,
  claim: BlockWrites,
  { nodes, name, proofOf }: { nodes: readonly unknown[]; name: string; proofOf: (address: Address) => unknown },
): Promise<string> => {
  const output = await proveWith(witnessJobOf(witnessed, claim, nodes), proofOf);
  if (output.kind === "proven") {
    const wrong = wrongAfter(witnessed, unpackWrites(output.packed));
    if (wrong.length > 0) {
      throw new Finding(`proven, but wrong: ${wrong.join(", ")}`, inputOf(witnessed, claim, name));
    }
  }
  return output.kind === "unproven" ? output.reason : output.kind;
};

const changedNodes = (nodes: readonly Data[], choices: Choices): readonly unknown[] => {
  if (choices.chance(0.3)) {
    return nodes.filter(() => choices.chance(0.8));
  }
  if (choices.chance(0.3)) {
    const changed: unknown = mutateJson([...nodes], choices);
    return Array.isArray(changed) ? changed : [];
  }
  const at = choices.below(nodes.length);
  return nodes.map((node, index) => (index === at ? formatData(mutateBytes(parseData(node), choices)) : node));
};

/** A node that lies in proofs too: an older one, that of another account, or a changed one. */
const lyingProofs =
  ({ afterProofs }: WitnessCase, choices: Choices) =>
  async (address: Address): Promise<unknown> => {
    if (choices.chance(0.5)) {
      return afterProofs.proofOf(choices.chance(0.5) ? address : addressAt(choices.below(ADDRESSES)), []);
    }
    const proof = await afterProofs.proofOf(address, []);
    const accountProof = proof.accountProof.map((node) =>
      choices.chance(0.3) ? formatData(mutateBytes(parseData(node), choices)) : node,
    );
    return { ...proof, accountProof: accountProof.filter((node) => isData(node)) };
  };

const checkBlock = async (choices: Choices): Promise<void> => {
  const before = randomWorld(choices);
  const witnessed = await createWitnessCase(before, nextWorld(before, choices));
  const { nodes, pathNodes, afterProofs } = witnessed;
  const proofOf = (address: Address) => afterProofs.proofOf(address, []);
  const claim = fullClaim(witnessed);
  const truth = await prove(witnessed, claim, { nodes, name: "truth", proofOf });
  if (truth !== "proven") {
    throw new Finding(`the truth is ${truth}`, inputOf(witnessed, claim, "truth"));
  }
  const open = withOpen(claim, choices);
  const opened = await prove(witnessed, open, { nodes, name: "open", proofOf });
  if (opened !== "proven") {
    throw new Finding(`the truth with open accounts is ${opened}`, inputOf(witnessed, open, "open"));
  }
  await prove(witnessed, open, { nodes: pathNodes, name: "paths", proofOf });
  for (let count = 0; count < LIES_OF_CASE; count++) {
    const name = choices.pick(Object.keys(LIES));
    const base = choices.chance(0.5) ? claim : open;
    const claimed = [...base.keys()];
    const address =
      claimed.length > 0 && choices.chance(0.8) ? choices.pick(claimed) : addressAt(choices.below(ADDRESSES));
    const lie = withLie(base, name, address, choices);
    await prove(witnessed, lie, { nodes, name, proofOf });
    await prove(witnessed, choices.chance(0.5) ? lie : base, { nodes: changedNodes(nodes, choices), name, proofOf });
    await prove(witnessed, lie, { nodes, name, proofOf: lyingProofs(witnessed, choices) });
  }
};

/** Updates of tries of which nodes are missing, and claimed writes of random blocks: a false one must never be proven. */
export const createTarget: CreateTarget = async () => ({
  run: async (choices) => {
    await checkTrie(choices);
    await checkBlock(choices);
  },
});
