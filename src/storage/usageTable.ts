import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import {
  AMOUNTS,
  type Amounts,
  dayBefore,
  isKeyRow,
  OTHER_KEY,
  type StoredUsage,
  USAGE_DAYS,
  type UsageBatch,
  type UsageRow,
} from "../core/usageStore.ts";

/** `usage` has the amounts of rows. `usage_runs` has the newest batch of each run on a day. */
export const USAGE_TABLES = `
  CREATE TABLE usage (day TEXT NOT NULL, row TEXT NOT NULL, ${AMOUNTS.map((name) => `${name} REAL NOT NULL`).join(", ")},
    PRIMARY KEY (day, row)) WITHOUT ROWID;
  CREATE TABLE usage_runs (day TEXT NOT NULL, run TEXT NOT NULL, batch INTEGER NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (day, run)) WITHOUT ROWID;
`;

const MAX_KEYS_A_DAY = 10_000;
/** The part of the database that keys of all days may take. */
const KEYS_SHARE = 1 / 8;
/** The row of a key, with a long name. */
const KEY_BYTES = 200;

const prepareStatements = (database: DatabaseSync) => ({
  batch: database.prepare("SELECT batch FROM usage_runs WHERE day = ? AND run = ?"),
  setBatch: database.prepare(`INSERT INTO usage_runs (day, run, batch, since) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET batch = excluded.batch`),
  since: database.prepare("SELECT min(since) AS since FROM usage_runs WHERE day = ?"),
  keys: database.prepare("SELECT count(*) AS keys FROM usage WHERE day = ? AND instr(row, ' ') = 0"),
  rows: database.prepare("SELECT * FROM usage WHERE day = ?"),
  units: database.prepare("SELECT units FROM usage WHERE day = ? AND row = ?"),
  add: database.prepare(`INSERT INTO usage VALUES (?, ?, ${AMOUNTS.map(() => "?").join(", ")})
    ON CONFLICT DO UPDATE SET ${AMOUNTS.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`),
  removeOld: database.prepare("DELETE FROM usage WHERE day <= ?"),
  removeOldRuns: database.prepare("DELETE FROM usage_runs WHERE day <= ?"),
});

const rowOf = (stored: Readonly<Record<string, SQLOutputValue>>): UsageRow => [
  String(stored.row),
  Object.fromEntries(AMOUNTS.map((name) => [name, Number(stored[name])])) as Amounts,
];

/** The usage of days in the database of a folder. Rows are not evicted: old days and the number of keys limit them. */
export class UsageTable {
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #maxKeys: number;

  /** `maxBytes`: the limit of the database. */
  constructor(database: DatabaseSync, maxBytes: number) {
    this.#database = database;
    this.#statements = prepareStatements(database);
    this.#maxKeys = Math.min(MAX_KEYS_A_DAY, Math.floor((maxBytes * KEYS_SHARE) / USAGE_DAYS / KEY_BYTES));
  }

  /** Adds all rows, or none, and returns their units. A batch that was added is not added again. */
  add(batch: UsageBatch): readonly number[] {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      this.#add(batch);
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.isTransaction) {
        this.#database.exec("ROLLBACK");
      }
      throw error;
    }
    return batch.rows.map(([row]) => this.#unitsOf(batch.day, row) ?? 0);
  }

  /** Returns all rows. Undefined if nothing was counted on the day. */
  read(day: string): StoredUsage | undefined {
    const { since } = this.#statements.since.get(day) ?? {};
    return typeof since === "number" ? { sinceMs: since, rows: this.#statements.rows.all(day).map(rowOf) } : undefined;
  }

  #unitsOf(day: string, row: string): number | undefined {
    const stored = this.#statements.units.get(day, row);
    return stored && Number(stored.units);
  }

  #add({ run, number, day, sinceMs, rows: all }: UsageBatch): void {
    const rows = all.filter(([, amounts]) => AMOUNTS.some((name) => amounts[name] !== 0));
    if (rows.length === 0) {
      return;
    }
    const newest = this.#statements.batch.get(day, run);
    if (Number(newest?.batch ?? 0) >= number) {
      return;
    }
    if (newest === undefined) {
      this.#removeOld(day);
    }
    this.#statements.setBatch.run(day, run, number, sinceMs);
    let room = this.#maxKeys - Number(this.#statements.keys.get(day)?.keys);
    for (const [row, amounts] of rows) {
      const isNewKey = isKeyRow(row) && this.#unitsOf(day, row) === undefined;
      this.#statements.add.run(
        ...[day, isNewKey && room <= 0 ? OTHER_KEY : row],
        ...AMOUNTS.map((name) => amounts[name]),
      );
      room -= isNewKey ? 1 : 0;
    }
  }

  /** Removes the days that are not read any more on this one. */
  #removeOld(day: string): void {
    const newest = dayBefore(day, USAGE_DAYS);
    this.#statements.removeOld.run(newest);
    this.#statements.removeOldRuns.run(newest);
  }
}
