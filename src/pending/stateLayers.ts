import type { AccountChange, StateChanges } from "../core/stateReader.ts";
import type { WrittenAccount } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { PendingBlockState } from "./applyFlashblock.ts";

/** One account's changes, with its slots by key. */
export interface LayerEntry {
  readonly written: WrittenAccount;
  readonly slots: ReadonlyMap<Hash, Uint8Array>;
}

/** The write set of a flashblock or of a whole block. */
export type Layer = ReadonlyMap<Address, LayerEntry>;

const entryOf = ({ slots, ...written }: AccountChange): LayerEntry => ({ written, slots: new Map(slots) });

export const layerFromChanges = (changes: StateChanges): Layer =>
  new Map(changes.entries().map(([address, change]) => [address, entryOf(change)]));

const mergeEntry = (older: LayerEntry | undefined, newer: LayerEntry): LayerEntry => {
  if (!older) {
    return newer;
  }
  const { written } = newer;
  // Earlier code stays valid, unless the account was destroyed or created again.
  const code = written.code ?? (written.isCleared ? undefined : older.written.code);
  const slots = written.isCleared ? newer.slots : new Map([...older.slots, ...newer.slots]);
  const isCleared = written.isCleared || older.written.isCleared;
  return { written: { account: written.account, isCleared, ...(code ? { code } : {}) }, slots };
};

/** Merges layers, oldest first, into one. */
export const mergeLayers = (layers: readonly Layer[]): Layer => {
  const merged = new Map<Address, LayerEntry>();
  for (const layer of layers) {
    for (const [address, entry] of layer) {
      merged.set(address, mergeEntry(merged.get(address), entry));
    }
  }
  return merged;
};

const layersOfMessages = new WeakMap<StateChanges, Layer>();
const layerOfMessage = (changes: StateChanges): Layer => {
  const layer = layersOfMessages.get(changes) ?? layerFromChanges(changes);
  layersOfMessages.set(changes, layer);
  return layer;
};

const layersOfBlocks = new WeakMap<PendingBlockState, Layer>();
const layersOf = (block: PendingBlockState): Layer[] =>
  block.parts.flatMap(({ changes }) => (changes ? [layerOfMessage(changes)] : []));
const layerOfBlock = (block: PendingBlockState): Layer => {
  const layer = layersOfBlocks.get(block) ?? mergeLayers(layersOf(block));
  layersOfBlocks.set(block, layer);
  return layer;
};

/** Returns the layers of these blocks, newest first: one for each flashblock of the newest block, one for each older block. */
export const stackLayers = (blocks: readonly PendingBlockState[]): readonly Layer[] => {
  const newest = blocks.at(-1);
  if (!newest) {
    return [];
  }
  return [...blocks.slice(0, -1).map(layerOfBlock), ...layersOf(newest)].reverse();
};

/** Merges an account's changes from all layers; returns undefined if no layer has the account. */
export const findAccount = (layers: readonly Layer[], address: Address): WrittenAccount | undefined => {
  let account: WrittenAccount | undefined;
  for (const layer of layers) {
    const written = layer.get(address)?.written;
    if (!written) {
      continue;
    }
    account ??= written;
    // An older layer may have the code, or show that the account's slots in the base are cleared.
    if (written.isCleared) {
      return { ...account, ...codeOf(account, written), isCleared: true };
    }
    account = { ...account, ...codeOf(account, written) };
  }
  return account;
};

const codeOf = (newer: WrittenAccount, older: WrittenAccount): { code?: Uint8Array } => {
  const code = newer.code ?? (older.account?.codeHash === newer.account?.codeHash ? older.code : undefined);
  return code ? { code } : {};
};

const NOTHING = new Uint8Array(0);

/** Returns a slot's value without leading zero bytes; undefined if no layer has it. */
export const findSlot = (layers: readonly Layer[], address: Address, slot: Hash): Uint8Array | undefined => {
  for (const layer of layers) {
    const entry = layer.get(address);
    const value = entry?.slots.get(slot);
    if (value) {
      return value;
    }
    if (entry?.written.isCleared) {
      return NOTHING;
    }
  }
  return undefined;
};
