import type { HeadChange, Heads } from "../core/heads.ts";
import type { ExtraBlockFields } from "./applyFlashblock.ts";

/** The heads of a chain, as upstream follows them. */
export interface HeadSource {
  current(): Heads | undefined;
  /** Listeners are called at once when the heads have changed. */
  subscribe(listener: (change: HeadChange) => void): () => void;
  /** Asks the nodes now; many calls at once cost one. */
  refresh(): Promise<Heads>;
  /** Pending blocks are sealed ones: look once a block. */
  setNative(native: boolean): void;
  readonly blockTimeMs: number;
}

/** Of the newest sealed block. */
export const extraBlockFieldsOf = (heads: Heads): ExtraBlockFields => {
  const totalDifficulty = heads.header(heads.latest.number)?.totalDifficulty;
  return typeof totalDifficulty === "string" ? { block: { totalDifficulty } } : {};
};
