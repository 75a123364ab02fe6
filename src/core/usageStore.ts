/** A sum of one day: a field, and its amounts in an order that the writer knows. Fields of keys begin with `KEY_FIELD`. */
export type UsageRow = readonly [field: string, amounts: readonly number[]];

/** Fields with this prefix are limited to `MAX_KEYS_A_DAY`. The amounts of further ones are added to `OTHER_FIELD`. */
export const KEY_FIELD = "key:";
export const OTHER_FIELD = `${KEY_FIELD}other`;
export const MAX_KEYS_A_DAY = 10_000;
/** Days of which usage is kept, today included. */
export const USAGE_DAYS = 35;

export const DAY_MS = 86_400_000;

/** Returns the UTC day of a time in milliseconds since 1970, for example `2026-11-26`. */
export const dayOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, "2026-11-26".length);

/** Returns the day that is this number of days earlier. */
export const dayBefore = (day: string, days: number): string => dayOf(Date.parse(day) - days * DAY_MS);

/** Amounts that are added to those of a day. A batch whose reply is lost may be sent again: it counts once. */
export interface UsageBatch {
  /** A random name of the process that counted. It sends one batch after another. */
  readonly run: string;
  /** Grows with each batch of a run. */
  readonly number: number;
  /** UTC, for example `2026-11-26`. */
  readonly day: string;
  /** The time from which this process has counted on this day, in milliseconds since 1970. */
  readonly sinceMs: number;
  readonly rows: readonly UsageRow[];
}

/** What all processes have counted on one day. */
export interface StoredUsage {
  /** The earliest `sinceMs`. */
  readonly sinceMs: number;
  readonly rows: readonly UsageRow[];
}

/** Keeps the usage of `USAGE_DAYS` days. */
export interface UsageStore {
  readonly name: "redis" | "folder";
  /** Adds all rows, or none. Rejects if that is unknown. */
  add(batch: UsageBatch): Promise<void>;
  /** Returns all rows, or those of `fields`. Undefined if nothing was counted on the day. Rejects if the store cannot be read. */
  read(day: string, fields?: readonly string[]): Promise<StoredUsage | undefined>;
}
