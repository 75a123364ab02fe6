/** The amounts that are counted for each row. */
export const AMOUNTS = [
  ...(["calls", "errors", "savedCalls", "units", "savedUnits"] as const),
  ...(["receivedBytes", "sentBytes", "spentUnits"] as const),
] as const;

export type Amounts = Readonly<Record<(typeof AMOUNTS)[number], number>>;

export const NO_AMOUNTS: Amounts = {
  ...{ calls: 0, errors: 0, savedCalls: 0, units: 0, savedUnits: 0 },
  ...{ receivedBytes: 0, sentBytes: 0, spentUnits: 0 },
};

export const addAmounts = (one: Amounts, other: Amounts): Amounts => ({
  calls: one.calls + other.calls,
  errors: one.errors + other.errors,
  savedCalls: one.savedCalls + other.savedCalls,
  units: one.units + other.units,
  savedUnits: one.savedUnits + other.savedUnits,
  receivedBytes: one.receivedBytes + other.receivedBytes,
  sentBytes: one.sentBytes + other.sentBytes,
  spentUnits: one.spentUnits + other.spentUnits,
});

/** The amounts of a key, or of a row beside the keys. */
export type UsageRow = readonly [row: string, amounts: Amounts];

/** Whether the row is of a key. No name of a key has a space, and the name of each other row has one. */
export const isKeyRow = (row: string): boolean => !row.includes(" ");

/** The row of keys that are not counted one by one. */
export const OTHER_KEY = "other";
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
  /** The earliest `sinceMs`, or that of the first batch. */
  readonly sinceMs: number;
  readonly rows: readonly UsageRow[];
}

/** Keeps the usage of `USAGE_DAYS` days. */
export interface UsageStore {
  readonly name: "redis" | "folder" | "memory";
  /** Adds all rows, or none. Returns the units that each row has then, in order. Rejects if that is unknown. */
  add(batch: UsageBatch): Promise<readonly number[]>;
  /** Returns all rows. Undefined if nothing was counted on the day. Rejects if the store cannot be read. */
  read(day: string): Promise<StoredUsage | undefined>;
}
