import type { BlockId } from "../core/heads.ts";
import type { Hex } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";

export interface NewFilter {
  /** The client that the filter counts for. */
  readonly clientId: string;
  /** Undefined: a filter of blocks. */
  readonly query: LogQuery | undefined;
  /** Blocks that count as reported, oldest first. */
  readonly blocks: readonly BlockId[];
}

/** Where a filter is: what the next poll starts from. */
export interface FilterCursor {
  readonly query: LogQuery | undefined;
  /** Differs after each advance. */
  readonly version: string;
  /** The newest block that was reported. */
  readonly last: BlockId | undefined;
}

/** What one poll reported. */
export interface FilterAdvance {
  /** The version that the poll started from. */
  readonly from: string;
  /** How many of the reported blocks stay, from the oldest; undefined: all. */
  readonly stayed: number | undefined;
  readonly added: readonly BlockId[];
  /** Logs of added blocks that may still be reorganised away, in the form of `joinLogs`. */
  readonly logs: readonly { readonly block: BlockId; readonly logs: Uint8Array }[];
  /** Blocks up to this number cannot be reorganised away: they are forgotten, except the last one. */
  readonly finalized: bigint;
}

/** Keeps polled filters until they expire. */
export interface FilterStore {
  /** False where the client, or everybody together, has too many. */
  add(id: Hex, filter: NewFilter): Promise<boolean>;
  /** Undefined for an unknown or expired filter; the life of a known one starts again. */
  read(id: string): Promise<FilterCursor | undefined>;
  /** The reported blocks that may still be reorganised away; undefined where the version is another one by now. */
  blocks(id: string, version: string): Promise<readonly BlockId[] | undefined>;
  /** The reported logs of each block: undefined for none, empty where there was no room for them. */
  logs(id: string, blocks: readonly BlockId[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** False where another poll was first, or the filter is gone: nothing has changed then. */
  advance(id: string, advance: FilterAdvance): Promise<boolean>;
  remove(id: string): Promise<boolean>;
}

/** A filter that nobody polls is forgotten after this time. */
export const FILTER_EXPIRY_MS = 300_000;
/** Blocks of one filter that are remembered for a reorganisation. */
export const MAX_FILTER_BLOCKS = 256;
/** Logs of one filter that are remembered for a reorganisation; those beyond are read by block hash. */
export const MAX_FILTER_BYTES = 1024 * 1024;
