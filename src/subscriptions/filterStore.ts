import { randomBytes } from "node:crypto";
import type { BlockId } from "../core/heads.ts";
import type { Hex } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";

/** A polled filter: a query and a cursor. */
export interface Filter {
  /** The filter counts towards the limit of this client. */
  readonly clientId: string;
  /** `undefined` for a filter of blocks. */
  readonly query: LogQuery | undefined;
  /** The newest block that was reported. */
  readonly cursor: BlockId;
  /** The blocks above this number, up to the cursor, were reported by the filter. The logs of others are never reported as removed. */
  readonly since: bigint;
  /** Differs after each poll with a new cursor. Otherwise two polls of one head would both store the same value as the first. */
  readonly nonce: string;
}

/** Stores polled filters until they expire. */
export interface FilterStore {
  /** Returns false if the client, or all clients together, have too many filters. */
  add(id: Hex, filter: Filter): Promise<boolean>;
  /** Returns `undefined` for an unknown or expired filter. The expiry of a known one starts again. */
  read(id: string): Promise<Filter | undefined>;
  /** Replaces a filter. Returns false, and changes nothing, if it has another nonce than `from`, or does not exist. */
  replace(id: string, from: Filter, to: Filter): Promise<boolean>;
  remove(id: string): Promise<boolean>;
}

/** A filter expires if no client polls it for this time. */
export const FILTER_EXPIRY_MS = 300_000;

export const NONCE_LENGTH = 12;

export const createNonce = (): string => randomBytes((NONCE_LENGTH * 3) / 4).toString("base64url");

/** Returns the query as JSON text. Quantities are hex. */
export const formatQuery = (query: LogQuery | undefined): string =>
  query === undefined
    ? ""
    : JSON.stringify(query, (_, value: unknown) => (typeof value === "bigint" ? `0x${value.toString(16)}` : value));
