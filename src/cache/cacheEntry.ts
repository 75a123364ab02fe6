import type { BlockId, Heads } from "../core/heads.ts";
import type { RetentionClass } from "../core/rpcSource.ts";

/** What is kept of an answer. */
export interface CacheEntry {
  /** UTF-8 JSON text of the result. */
  readonly body: Uint8Array;
  readonly block?: BlockId;
  /** The block was final when the answer was kept. */
  readonly final: boolean;
  /** Milliseconds since 1970. */
  readonly storedAtMs: number;
}

/** Whether that block is canonical in a view: the ring decides where it reaches, below it only what was final when it was kept. */
export const isCanonical = (block: BlockId, keptAsFinal: boolean, heads: Heads): boolean => {
  const known = heads.at(block.number);
  if (known !== undefined) return known.hash === block.hash;
  return keptAsFinal && heads.finalized !== undefined && block.number <= heads.finalized.number;
};

/** An answer by transaction hash is true while its block is canonical; every other entry has what it depends on in its key. */
export const isValid = (entry: CacheEntry, retention: RetentionClass, heads: Heads): boolean =>
  retention !== "byTransaction" || (entry.block !== undefined && isCanonical(entry.block, entry.final, heads));

/** What other replicas may use too; the rest lives in memory alone. */
const SHARED: ReadonlySet<RetentionClass> = new Set(["byHash", "final", "recent", "byTransaction"]);

export const isShared = (retention: RetentionClass): boolean => SHARED.has(retention);

const FINAL_SECONDS = 7 * 86_400;
const RECENT_SECONDS = 3_600;

/** How long Redis keeps an entry. */
export const redisSeconds = (entry: CacheEntry): number => (entry.final ? FINAL_SECONDS : RECENT_SECONDS);
