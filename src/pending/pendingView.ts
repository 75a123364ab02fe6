import type { StateChanges } from "../core/stateReader.ts";
import type { PendingBlock, PendingMode, PendingSource, PendingView } from "../core/view.ts";
import { larger } from "../ethereum/bigintOrder.ts";
import type { Hash } from "../ethereum/hex.ts";
import { type BlockPart, isExecuted, type PendingChain } from "./applyMessage.ts";
import type { BlockFormatter } from "./blockFormatter.ts";
import { findAccount, findSlot } from "./stateLayers.ts";

export interface ViewParts {
  readonly mode: PendingMode;
  readonly blocksFrom: PendingSource;
  readonly stateFrom: PendingSource;
  readonly chain: PendingChain;
  readonly formatted: BlockFormatter;
  /** Returns a chain by the hash of its newest block that a client received. */
  readonly chainAt: (hash: Hash) => PendingChain | undefined;
}

/** A late message extends a block below the newest one. */
const idOf = (blocks: readonly PendingBlock[]): string =>
  blocks.map(({ number, index, hash }) => `${number}-${index}-${hash.slice(2, 18)}`).join("+");

/** Returns the write sets of these parts of blocks, newest first. */
const layersOf = (parts: readonly BlockPart[]): readonly StateChanges[] =>
  parts.flatMap(({ changes }) => changes ?? []).reverse();

/** Returns the parts up to the first that is not verified. */
const verifiedParts = (parts: readonly BlockPart[]): readonly BlockPart[] => {
  const unverified = parts.findIndex(({ changes }) => changes === undefined);
  return unverified < 0 ? parts : parts.slice(0, unverified);
};

/** Creates the immutable view of the pending blocks that one request uses. */
export const createView = (parts: ViewParts): PendingView => {
  const { chain, blocksFrom, stateFrom } = parts;
  const states = blocksFrom === "view" ? chain.blocks : [];
  const blocks = states.map((block) => parts.formatted.format(block));
  const newest = blocks.at(-1);
  const allParts = chain.blocks.flatMap((block) => block.parts);
  const layers = stateFrom === "view" ? layersOf(allParts) : [];

  const find: PendingView["find"] = (transactionHash) => {
    for (const [position, block] of states.entries()) {
      for (const { firstTransaction, transactions } of block.parts) {
        const at = transactions.findIndex(({ hash }) => hash === transactionHash);
        const pendingBlock = blocks[position];
        if (at >= 0 && pendingBlock) {
          return { block: pendingBlock, index: firstTransaction + at };
        }
      }
    }
    return undefined;
  };

  return {
    mode: parts.mode,
    id: idOf(blocks),
    blocksFrom,
    stateFrom,
    base: chain.base,
    blocks,
    newest,
    account: (address) => findAccount(layers, address),
    storage: (address, slot) => findSlot(layers, address, slot),
    nonce: (address, stateNonce) =>
      larger(stateNonce, findAccount(layersOf(verifiedParts(allParts)), address)?.account?.nonce ?? 0n),
    find,
    byHash: (hash) => {
      const block = parts.chainAt(hash)?.blocks.at(-1);
      return block && parts.formatted.format(block);
    },
    atHash: (hash) => {
      const found = parts.chainAt(hash);
      return found && isExecuted(found.blocks)
        ? createView({ ...parts, blocksFrom: "view", stateFrom: "view", chain: found })
        : undefined;
    },
  };
};
