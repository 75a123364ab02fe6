import type { DatabaseSync } from "node:sqlite";
import {
  dayBefore,
  KEY_FIELD,
  MAX_KEYS_A_DAY,
  OTHER_FIELD,
  type StoredUsage,
  USAGE_DAYS,
  type UsageBatch,
  type UsageRow,
} from "../core/usageStore.ts";

/** `usage` has the amounts, as numbers with spaces. `usage_runs` has the newest batch of each run on a day. */
export const USAGE_TABLES = `
  CREATE TABLE usage (day TEXT NOT NULL, field TEXT NOT NULL, amounts TEXT NOT NULL, PRIMARY KEY (day, field)) WITHOUT ROWID;
  CREATE TABLE usage_runs (day TEXT NOT NULL, run TEXT NOT NULL, batch INTEGER NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (day, run)) WITHOUT ROWID;
`;

/** The part of the database that keys of all days may take. */
const KEYS_SHARE = 1 / 8;
/** The row of a key, with a long name. */
const KEY_BYTES = 200;

const parseAmounts = (text: unknown): readonly number[] => String(text).split(" ").map(Number);

const prepareStatements = (database: DatabaseSync) => ({
  batch: database.prepare("SELECT batch FROM usage_runs WHERE day = ? AND run = ?"),
  setBatch: database.prepare(`INSERT INTO usage_runs (day, run, batch, since) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET batch = excluded.batch`),
  since: database.prepare("SELECT min(since) AS since FROM usage_runs WHERE day = ?"),
  keys: database.prepare(
    `SELECT count(*) AS keys FROM usage WHERE day = ? AND substr(field, 1, ${KEY_FIELD.length}) = ?`,
  ),
  amounts: database.prepare("SELECT amounts FROM usage WHERE day = ? AND field = ?"),
  setAmounts: database.prepare("INSERT OR REPLACE INTO usage (day, field, amounts) VALUES (?, ?, ?)"),
  rows: database.prepare("SELECT field, amounts FROM usage WHERE day = ?"),
  row: database.prepare("SELECT field, amounts FROM usage WHERE day = ? AND field = ?"),
  removeOld: database.prepare("DELETE FROM usage WHERE day <= ?"),
  removeOldRuns: database.prepare("DELETE FROM usage_runs WHERE day <= ?"),
});

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

  /** Adds all rows, or none. A batch that was added is not added again. */
  add(batch: UsageBatch): void {
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
  }

  /** Returns all rows, or those of `fields`. Undefined if nothing was counted on the day. */
  read(day: string, fields?: readonly string[]): StoredUsage | undefined {
    const { since } = this.#statements.since.get(day) ?? {};
    if (typeof since !== "number") {
      return undefined;
    }
    const { row, rows } = this.#statements;
    const found = fields === undefined ? rows.all(day) : fields.map((field) => row.get(day, field));
    return {
      sinceMs: since,
      rows: found.flatMap((each) => (each ? [[String(each.field), parseAmounts(each.amounts)]] : [])),
    };
  }

  #add({ run, number, day, sinceMs, rows }: UsageBatch): void {
    const newest = this.#statements.batch.get(day, run);
    if (Number(newest?.batch ?? 0) >= number) {
      return;
    }
    if (newest === undefined) {
      this.#removeOld(day);
    }
    this.#statements.setBatch.run(day, run, number, sinceMs);
    let room = this.#maxKeys - Number(this.#statements.keys.get(day, KEY_FIELD)?.keys);
    for (const row of rows) {
      const isNew = row[0].startsWith(KEY_FIELD) && this.#statements.amounts.get(day, row[0]) === undefined;
      this.#addRow(day, isNew && room <= 0 ? [OTHER_FIELD, row[1]] : row);
      room -= isNew ? 1 : 0;
    }
  }

  #addRow(day: string, [field, amounts]: UsageRow): void {
    const before = this.#statements.amounts.get(day, field)?.amounts;
    const old = before === undefined ? [] : parseAmounts(before);
    const sums = amounts.map((amount, index) => amount + (old[index] ?? 0));
    this.#statements.setAmounts.run(day, field, sums.join(" "));
  }

  /** Removes the days that are not read any more on this one. */
  #removeOld(day: string): void {
    const newest = dayBefore(day, USAGE_DAYS);
    this.#statements.removeOld.run(newest);
    this.#statements.removeOldRuns.run(newest);
  }
}
