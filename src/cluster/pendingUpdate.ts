import type { BlockId } from "../core/heads.ts";
import type { PendingChange, PendingExtension, PendingView } from "../core/view.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import type { BlockPart, PendingBlockState } from "../pending/applyMessage.ts";
import { pendingBlockState } from "../pending/blockFormatter.ts";

/** A pending block with its parts by id. */
interface PlainBlock extends Omit<PendingBlockState, "parts" | "newest"> {
  readonly partIds: readonly number[];
}

/** A pending view as plain data. Blocks and parts that the receiver has are sent as their ids. */
export interface PendingUpdate extends Pick<PendingView, "mode" | "blocksFrom" | "stateFrom"> {
  readonly base: BlockId;
  readonly blockIds: readonly number[];
  readonly newBlocks: readonly (readonly [number, PlainBlock])[];
  readonly newParts: readonly (readonly [number, BlockPart])[];
  readonly extended: readonly (Omit<PendingExtension, "block"> & { readonly blockId: number })[];
  readonly removed: readonly Uint8Array[];
}

/** Removes what only the process that follows the feed needs. The transactions are in the part. */
const withoutInputs = (message: FeedMessage): FeedMessage => ({
  ...message,
  environment: undefined,
  transactions: [],
  receipts: undefined,
  changes: undefined,
  accessList: [],
});

class Ids<T extends object> {
  readonly #ids = new WeakMap<T, number>();
  #last = 0;

  of(value: T): number {
    const id = this.#ids.get(value) ?? this.#last + 1;
    this.#ids.set(value, id);
    this.#last = Math.max(this.#last, id);
    return id;
  }
}

/** Converts pending views to plain data. It sends each part of a block once. */
export class PendingEncoder {
  readonly #blocks = new Ids<PendingBlockState>();
  readonly #parts = new Ids<BlockPart>();

  /** `before` is the view that the receivers have. */
  encode(view: PendingView, change: Pick<PendingChange, "extended" | "removed">, before?: PendingView): PendingUpdate {
    const { mode, blocksFrom, stateFrom, base } = view;
    const states = view.blocks.map(pendingBlockState);
    const known = before?.blocks.map(pendingBlockState) ?? [];
    const knownParts = new Set(known.flatMap(({ parts }) => parts));
    const newParts = states.flatMap(({ parts }) => parts).filter((part) => !knownParts.has(part));
    return {
      mode,
      blocksFrom,
      stateFrom,
      base,
      blockIds: states.map((state) => this.#blocks.of(state)),
      newBlocks: states.filter((state) => !known.includes(state)).map((state) => this.#plainBlock(state)),
      newParts: newParts.map((part) => [this.#parts.of(part), { ...part, message: withoutInputs(part.message) }]),
      extended: change.extended.map(({ block, ...rest }) => ({
        ...rest,
        blockId: this.#blocks.of(pendingBlockState(block)),
      })),
      removed: change.removed,
    };
  }

  #plainBlock(state: PendingBlockState): readonly [number, PlainBlock] {
    const { parts, newest: _, ...rest } = state;
    return [this.#blocks.of(state), { ...rest, partIds: parts.map((part) => this.#parts.of(part)) }];
  }
}

/** Rebuilds the pending blocks of another process. Equal blocks stay the same object, so that their bodies are formatted once. */
export class PendingDecoder {
  #blocks = new Map<number, PendingBlockState>();
  #parts = new Map<number, BlockPart>();

  /** Returns the blocks of the view, ascending. */
  decode({ blockIds, newBlocks, newParts }: PendingUpdate): readonly PendingBlockState[] {
    const parts = new Map([...this.#parts, ...newParts]);
    const created = newBlocks.map(([id, block]): [number, PendingBlockState] => [id, this.#toState(block, parts)]);
    const blocks = new Map([...this.#blocks, ...created]);
    this.#blocks = new Map(blockIds.map((id) => [id, required(blocks.get(id), `block ${id}`)]));
    const used = new Set([...this.#blocks.values()].flatMap((state) => state.parts));
    this.#parts = new Map([...parts].filter(([, part]) => used.has(part)));
    return [...this.#blocks.values()];
  }

  /** Returns a block of the last view. */
  block(id: number): PendingBlockState | undefined {
    return this.#blocks.get(id);
  }

  #toState({ partIds, ...rest }: PlainBlock, known: ReadonlyMap<number, BlockPart>): PendingBlockState {
    const parts = partIds.map((id) => required(known.get(id), `part ${id}`));
    const newest = required(parts.at(-1), "the newest part").message;
    return { ...rest, parts, newest };
  }
}

const required = <T>(value: T | undefined, what: string): T => {
  if (value === undefined) {
    throw new Error(`the copy of the pending view lacks ${what}`);
  }
  return value;
};
