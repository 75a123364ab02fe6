import type { DatabaseSync } from "node:sqlite";

/** What a chain's rows hold: the blocks of rows that count, by their numbers, and a text that says for what they hold. */
export interface StateHead {
  readonly first: number;
  readonly last: number;
  readonly text: string;
}

/** Blocks of rows, each with many values. A value with a row of its own would be in a random page, and each save would write them all. */
export const STATE_TABLES = `
  CREATE TABLE state_heads (chain TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, head TEXT NOT NULL);
  CREATE TABLE state_rows (chain TEXT NOT NULL, number INTEGER NOT NULL, rows BLOB NOT NULL, PRIMARY KEY (chain, number));
`;

/** Blocks of rows that one step removes. It takes about a millisecond. */
const REMOVED_AT_ONCE = 16;

const prepareStatements = (database: DatabaseSync) => ({
  head: database.prepare("SELECT first, last, head FROM state_heads WHERE chain = ?"),
  setHead: database.prepare("INSERT OR REPLACE INTO state_heads (chain, first, last, head) VALUES (?, ?, ?, ?)"),
  drop: database.prepare("UPDATE state_heads SET first = last + 1, head = '' WHERE chain = ?"),
  rows: database.prepare("SELECT rows FROM state_rows WHERE chain = ? AND number = ?"),
  setRows: database.prepare("INSERT OR REPLACE INTO state_rows (chain, number, rows) VALUES (?, ?, ?)"),
  removeOld: database.prepare(`DELETE FROM state_rows WHERE rowid IN (SELECT state_rows.rowid
    FROM state_heads JOIN state_rows USING (chain) WHERE number < first LIMIT ${REMOVED_AT_ONCE})`),
});

/** The known state of chains in the database of a folder. Rows count once the head of their chain names them: all of a save, or none. */
export class StateTable {
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(database: DatabaseSync) {
    this.#statements = prepareStatements(database);
  }

  /** Returns undefined if nothing was ever stored. After a drop, the text is empty. */
  head(chain: string): StateHead | undefined {
    const row = this.#statements.head.get(chain);
    return row && { first: Number(row.first), last: Number(row.last), text: String(row.head) };
  }

  setHead(chain: string, { first, last, text }: StateHead): void {
    this.#statements.setHead.run(chain, first, last, text);
  }

  /** Ends the rows of a chain. The numbers go on. */
  drop(chain: string): void {
    this.#statements.drop.run(chain);
  }

  rows(chain: string, number: number): Uint8Array | undefined {
    const value = this.#statements.rows.get(chain, number)?.rows;
    return value instanceof Uint8Array ? value : undefined;
  }

  setRows(chain: string, number: number, rows: Uint8Array): void {
    this.#statements.setRows.run(chain, number, rows);
  }

  /** Removes some rows that do not count any more. Returns whether there may be more. */
  trim(): boolean {
    return Number(this.#statements.removeOld.run().changes) > 0;
  }
}
