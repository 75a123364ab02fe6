import type { BlockId, Heads } from "../core/heads.ts";
import type { Hex } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";

export interface NewFilter {
  /** The filter counts towards the limit of this client. */
  readonly clientId: string;
  /** `undefined` for a filter of blocks. */
  readonly query: LogQuery | undefined;
  /** Blocks that count as reported, oldest first. */
  readonly blocks: readonly BlockId[];
}

/** The position of a filter: the next poll starts from it. */
export interface FilterCursor {
  readonly query: LogQuery | undefined;
  /** Changes with each advance. */
  readonly version: string;
  /** The newest block that was reported. */
  readonly last: BlockId | undefined;
}

/** A block that a filter has reported, or reports now. */
export interface ReportedBlock extends BlockId {
  /**
   * The filter's logs of the block, in the form of `joinLogs`. Undefined if it has none, or if no reorganisation can remove them.
   * Empty if the store had no room for them: then they are read by block hash.
   */
  readonly logs?: Uint8Array | undefined;
}

/** The step of a filter by one poll. */
export interface FilterAdvance {
  /** The version at the start of the poll. */
  readonly from: string;
  /** The number of reported blocks that stay, counted from the oldest. `undefined` for all. */
  readonly stayed: number | undefined;
  readonly added: readonly ReportedBlock[];
  /** A reorganisation cannot remove blocks up to this number. They are evicted, except the last one. */
  readonly finalized: bigint;
}

/**
 * Stores polled filters until they expire. The logs of reported blocks are stored too: many nodes forget a block that was
 * replaced, and its logs are then known to nobody else.
 */
export interface FilterStore {
  /** Returns false if the client, or all clients together, have too many filters. */
  add(id: Hex, filter: NewFilter): Promise<boolean>;
  /** Returns `undefined` for an unknown or expired filter. The expiry of a known one starts again. */
  read(id: string): Promise<FilterCursor | undefined>;
  /** Returns the reported blocks that a reorganisation can remove. Returns `undefined` if the version has changed. */
  reported(id: string, version: string): Promise<readonly ReportedBlock[] | undefined>;
  /** Returns false, and changes nothing, if another poll was first or the filter does not exist. */
  advance(id: string, advance: FilterAdvance): Promise<boolean>;
  remove(id: string): Promise<boolean>;
}

/** A filter expires if no client polls it for this time. */
export const FILTER_EXPIRY_MS = 300_000;
/** Limit of the blocks that are stored with a filter to report a reorganisation. */
export const MAX_FILTER_BLOCKS = 256;
/** Limit of the logs that are stored with a filter to report a reorganisation. */
export const MAX_FILTER_BYTES = 64 * 1024;

/** Returns the query as JSON text. Quantities are hex. */
export const formatQuery = (query: LogQuery | undefined): string =>
  query === undefined
    ? ""
    : JSON.stringify(query, (_, value: unknown) => (typeof value === "bigint" ? `0x${value.toString(16)}` : value));

/** Returns the bytes that count towards a client's limit: the query, and room for the logs of a log filter. */
export const weightOfQuery = (text: string): number => (text === "" ? 0 : text.length + MAX_FILTER_BYTES);

/** Returns the number of the finalized block, or -1 if no node reports one. */
export const finalizedNumber = ({ finalized }: Heads): bigint => finalized?.number ?? -1n;
