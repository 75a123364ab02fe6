import type { AccountChange, StateChanges } from "../core/stateReader.ts";
import type { WrittenAccount } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { PendingBlockState } from "./applyFlashblock.ts";

/** One account's changes, with its slots ready to be looked up. */
export interface LayerEntry {
  readonly written: WrittenAccount;
  readonly slots: ReadonlyMap<Hash, Uint8Array>;
}

/** What a message, or a whole block, wrote. */
export type Layer = ReadonlyMap<Address, LayerEntry>;

const entryOf = ({ slots, ...written }: AccountChange): LayerEntry => ({ written, slots: new Map(slots) });

export const layerFromChanges = (changes: StateChanges): Layer =>
  new Map(changes.entries().map(([address, change]) => [address, entryOf(change)]));

const mergeEntry = (older: LayerEntry | undefined, newer: LayerEntry): LayerEntry => {
  if (!older) return newer;
  const { written } = newer;
  // Code that was written earlier in the block still stands, unless the account is gone or was made anew.
  const code = written.code ?? (written.isCleared ? undefined : older.written.code);
  const slots = written.isCleared ? newer.slots : new Map([...older.slots, ...newer.slots]);
  const isCleared = written.isCleared || older.written.isCleared;
  return { written: { account: written.account, isCleared, ...(code ? { code } : {}) }, slots };
};

/** One layer that says what all say together; oldest first. */
export const mergeLayers = (layers: readonly Layer[]): Layer => {
  const merged = new Map<Address, LayerEntry>();
  for (const layer of layers) {
    for (const [address, entry] of layer) merged.set(address, mergeEntry(merged.get(address), entry));
  }
  return merged;
};

const layersOfMessages = new WeakMap<StateChanges, Layer>();
const layerOfMessage = (changes: StateChanges): Layer => {
  const known = layersOfMessages.get(changes) ?? layerFromChanges(changes);
  layersOfMessages.set(changes, known);
  return known;
};

const layersOfBlocks = new WeakMap<PendingBlockState, Layer>();
const layersOf = (block: PendingBlockState): Layer[] =>
  block.parts.flatMap(({ changes }) => (changes ? [layerOfMessage(changes)] : []));
const layerOfBlock = (block: PendingBlockState): Layer => {
  const known = layersOfBlocks.get(block) ?? mergeLayers(layersOf(block));
  layersOfBlocks.set(block, known);
  return known;
};

/** The layers of these blocks, newest first: one a message in the newest block, one a block below it. */
export const stackLayers = (blocks: readonly PendingBlockState[]): readonly Layer[] => {
  const newest = blocks.at(-1);
  if (!newest) return [];
  return [...blocks.slice(0, -1).map(layerOfBlock), ...layersOf(newest)].reverse();
};

export const findAccount = (layers: readonly Layer[], address: Address): WrittenAccount | undefined => {
  let account: WrittenAccount | undefined;
  for (const layer of layers) {
    const written = layer.get(address)?.written;
    if (!written) continue;
    account ??= written;
    // An older layer may hold the code, or know that the base's slots no longer count.
    if (written.isCleared) return { ...account, ...codeOf(account, written), isCleared: true };
    account = { ...account, ...codeOf(account, written) };
  }
  return account;
};

const codeOf = (newer: WrittenAccount, older: WrittenAccount): { code?: Uint8Array } => {
  const code = newer.code ?? (older.account?.codeHash === newer.account?.codeHash ? older.code : undefined);
  return code ? { code } : {};
};

const NOTHING = new Uint8Array(0);

/** Without leading zero bytes; undefined where no layer says it. */
export const findSlot = (layers: readonly Layer[], address: Address, slot: Hash): Uint8Array | undefined => {
  for (const layer of layers) {
    const entry = layer.get(address);
    const value = entry?.slots.get(slot);
    if (value) return value;
    if (entry?.written.isCleared) return NOTHING;
  }
  return undefined;
};
