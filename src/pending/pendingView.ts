import type { BlockId } from "../core/heads.ts";
import type { PendingBlock, PendingMode, PendingSource, PendingView } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { PendingBlockState, PendingChain } from "./applyFlashblock.ts";
import { createPendingBlock } from "./pendingBlock.ts";
import { findAccount, findSlot, stackLayers } from "./stateLayers.ts";

export interface ViewParts {
  readonly mode: PendingMode;
  readonly blocksFrom: PendingSource;
  readonly stateFrom: PendingSource;
  readonly chain: PendingChain;
  /** Blocks by the hashes that were given out (recentHashes). */
  readonly byHash: (hash: Hash) => PendingBlock | undefined;
  /** The nonce raised over what was sent through forebay (acceptedNonces). */
  readonly advanceNonce: (address: Address, nonce: bigint) => bigint;
}

const shown = new WeakMap<PendingBlockState, PendingBlock>();
/** One object a message, so that its bodies are made once for all views that hold it. */
export const showBlock = (block: PendingBlockState): PendingBlock => {
  const known = shown.get(block) ?? createPendingBlock(block);
  shown.set(block, known);
  return known;
};

const idOf = (base: BlockId, newest: PendingBlock | undefined): string =>
  newest ? `${newest.number}-${newest.index}-${newest.hash.slice(2, 18)}` : `${base.number}-${base.hash.slice(2, 18)}`;

/** What one request sees of the pre-confirmed chain. */
export const createView = (parts: ViewParts): PendingView => {
  const { chain, blocksFrom, stateFrom } = parts;
  const folded = blocksFrom === "view" ? chain.blocks : [];
  const blocks = folded.map(showBlock);
  const newest = blocks.at(-1);
  const layers = stateFrom === "view" ? stackLayers(folded) : [];

  const find: PendingView["find"] = (transactionHash) => {
    for (const [position, block] of folded.entries()) {
      for (const { firstTransaction, transactions } of block.parts) {
        const at = transactions.findIndex(({ hash }) => hash === transactionHash);
        const shownBlock = blocks[position];
        if (at >= 0 && shownBlock) return { block: shownBlock, index: firstTransaction + at };
      }
    }
    return undefined;
  };

  return {
    mode: parts.mode,
    id: idOf(chain.base, newest),
    blocksFrom,
    stateFrom,
    base: chain.base,
    blocks,
    newest,
    account: (address) => findAccount(layers, address),
    storage: (address, slot) => findSlot(layers, address, slot),
    nonce: (address, stateNonce) =>
      parts.advanceNonce(address, findAccount(layers, address)?.account?.nonce ?? stateNonce),
    find,
    byHash: parts.byHash,
  };
};
