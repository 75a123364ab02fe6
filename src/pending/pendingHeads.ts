import type { HeadChange, Heads } from "../core/heads.ts";
import type { ExtraBlockFields } from "./applyFlashblock.ts";

/** The heads of a chain, as the head tracker publishes them. */
export interface HeadSource {
  current(): Heads | undefined;
  /** Calls the listener synchronously when the heads change. */
  subscribe(listener: (change: HeadChange) => void): () => void;
  /** Polls the nodes now. Concurrent calls share one poll. */
  refresh(): Promise<Heads>;
  /** In native mode, sealed blocks answer at `pending`. The heads are then polled once a block. */
  setNative(native: boolean): void;
  readonly blockTimeMs: number;
}

/** Returns the extra fields of the newest sealed block. */
export const extraBlockFieldsOf = (heads: Heads): ExtraBlockFields => {
  const totalDifficulty = heads.header(heads.latest.number)?.totalDifficulty;
  return typeof totalDifficulty === "string" ? { block: { totalDifficulty } } : {};
};
