import { hash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { StoredUsage, UsageBatch } from "../core/usageStore.ts";
import { createPrivateFile, databasePath, FolderLock, prepareFolder, removeDatabase } from "./dataFolder.ts";
import { STATE_TABLES, StateTable } from "./stateTable.ts";
import { DamagedDatabase, FolderRemoved, storageFault } from "./storageFault.ts";
import { USAGE_TABLES, UsageTable } from "./usageTable.ts";

/** A value of a key, or its end. */
export interface EntryChange {
  readonly key: string;
  /** Undefined: the entry is removed. */
  readonly value: Uint8Array | undefined;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
}

/** The newest final block that a chain had. */
export interface FinalBlock {
  readonly number: string;
  readonly hash: string;
}

export interface StorageSize {
  /** Of all files. */
  readonly bytes: number;
  readonly entries: number;
}

/** Increased when tables or values change their form. A database of another version is dropped. */
const SCHEMA_VERSION = 5;
/** "fbay". It tells other programs what the file is. */
const APPLICATION_ID = 0x66626179;

const TABLES = `
  CREATE TABLE parts (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, number TEXT, hash TEXT);
  CREATE TABLE entries (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, key TEXT NOT NULL, expires INTEGER NOT NULL, value BLOB NOT NULL);
  CREATE INDEX by_hash ON entries (hash);
  ${STATE_TABLES}
  ${USAGE_TABLES}
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** The write-ahead log is merged into the database at this size. A larger batch makes it larger for a time. */
const WAL_BYTES = 4 * 1024 * 1024;
/** The part of `maxBytes` for the write-ahead log, in small databases. */
const WAL_SHARE = 1 / 4;
/** Room for the next batches: this part of the database, up to these bytes. */
const FREE_SHARE = 1 / 16;
const MAX_FREE_BYTES = 16 * 1024 * 1024;
/** The entries that one step of the eviction removes. It takes about a millisecond. */
const EVICTED_AT_ONCE = 200;
/** An entry that is read in the oldest part is moved to the newest ones. */
const OLD_SHARE = 1 / 4;
/** No process writes as many entries. Numbers above 2^53 are not exact. */
const MAX_ID = 2 ** 52;
/** Bytes of a hash: more do not fit into a number. The key decides about equality. */
const HASH_BYTES = 6;

const walPath = (path: string): string => `${path}-wal`;

const hashOf = (key: string): number => hash("sha1", key, "buffer").readUIntLE(0, HASH_BYTES);

/** The part of a key ends with its third colon. It is removed as a whole. */
export const partOf = (key: string): string => {
  let end = 0;
  for (let colons = 0; colons < 3; colons++) {
    end = key.indexOf(":", end) + 1;
  }
  return key.slice(0, end);
};

type Statements = ReturnType<typeof prepareStatements>;

const prepareStatements = (database: DatabaseSync) => {
  const prepare = (sql: string): StatementSync => database.prepare(sql);
  return {
    find: prepare("SELECT id, expires, value FROM entries WHERE hash = ? AND key = ?"),
    remove: prepare("DELETE FROM entries WHERE hash = ? AND key = ?"),
    add: prepare("INSERT INTO entries (id, hash, key, expires, value) VALUES (?, ?, ?, ?, ?)"),
    move: prepare("UPDATE entries SET id = ? WHERE id = ?"),
    evict: prepare("DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY id LIMIT ?)"),
    ids: prepare("SELECT min(id) AS first, max(id) AS last, count(*) AS entries FROM entries"),
    first: prepare("SELECT min(id) AS first FROM entries"),
    lastPart: prepare("SELECT max(seq) AS last FROM sqlite_sequence"),
    pages: prepare(
      "SELECT page_count AS pages, freelist_count AS free, page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    ),
    parts: prepare("SELECT id, name FROM parts"),
    addPart: prepare("INSERT INTO parts (name) VALUES (?)"),
    removePart: prepare("DELETE FROM parts WHERE name = ?"),
    block: prepare("SELECT number, hash FROM parts WHERE name = ? AND number IS NOT NULL"),
    setBlock: prepare("UPDATE parts SET number = ?, hash = ? WHERE name = ?"),
  };
};

/**
 * The entries of one folder, in the order in which they were written: the oldest are evicted first. It belongs to the process with
 * the lock. Methods throw errors of SQLite and of the file system.
 */
export class EntryDatabase {
  readonly #folder: string;
  readonly #lock: FolderLock;
  readonly #parts = new Map<string, number>();
  /** Entries that were read in the oldest part. */
  readonly #readOld = new Set<number>();
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #usage: UsageTable;
  readonly #state: StateTable;
  readonly #maxPages: number;
  #firstId: number;
  #lastId: number;
  #entries: number;

  private constructor(folder: string, maxBytes: number, lock: FolderLock) {
    this.#folder = folder;
    this.#lock = lock;
    const { database, maxPages } = openDatabase(folder, maxBytes);
    this.#database = database;
    this.#maxPages = maxPages;
    this.#statements = prepareStatements(database);
    this.#usage = new UsageTable(database, maxBytes);
    this.#state = new StateTable(database);
    this.#database.exec(`PRAGMA max_page_count = ${this.#maxPages}`);
    const { first, last, entries } = this.#statements.ids.get() ?? {};
    this.#firstId = Number(first ?? 0);
    this.#lastId = Number(last ?? 0);
    this.#entries = Number(entries ?? 0);
    this.#checkIds();
    this.#readParts();
  }

  /** Throws if the ids leave no room for further ones. */
  #checkIds(): void {
    const lastPart = Number(this.#statements.lastPart.get()?.last ?? 0);
    if (Math.max(this.#lastId, lastPart) > MAX_ID) {
      throw new DamagedDatabase(`the last ids are ${this.#lastId} and ${lastPart}`);
    }
  }

  /** Returns undefined if another process uses the folder. A database that cannot be read is replaced by an empty one. */
  static open(folder: string, maxBytes: number): EntryDatabase | undefined {
    prepareFolder(folder);
    const lock = FolderLock.take(folder);
    if (lock === undefined) {
      return undefined;
    }
    try {
      return new EntryDatabase(folder, maxBytes, lock);
    } catch (error) {
      if (storageFault(error) === "corrupt") {
        removeDatabase(folder);
      }
      lock.release();
      throw error;
    }
  }

  get size(): StorageSize {
    const { pages, bytes } = this.#pages();
    const wal = statSync(walPath(databasePath(this.#folder)), { throwIfNoEntry: false })?.size ?? 0;
    return { bytes: pages * bytes + wal, entries: this.#entries };
  }

  /** Returns one value per key, in the order of the keys. */
  read(keys: readonly string[]): readonly (Uint8Array | undefined)[] {
    const nowMs = Date.now();
    const oldId = this.#firstId + (this.#lastId - this.#firstId) * OLD_SHARE;
    return keys.map((key) => {
      const name = this.#nameOf(key);
      const row = name === undefined ? undefined : this.#statements.find.get(hashOf(name), name);
      if (row === undefined || Number(row.expires) <= nowMs || !(row.value instanceof Uint8Array)) {
        return undefined;
      }
      const id = Number(row.id);
      if (id < oldId) {
        this.#readOld.add(id);
      }
      return row.value;
    });
  }

  /** Applies all changes, or none. */
  write(changes: readonly EntryChange[]): void {
    this.#checkFiles();
    const before = { lastId: this.#lastId, entries: this.#entries };
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      for (const change of changes) {
        this.#apply(change);
      }
      for (const id of this.#readOld) {
        this.#statements.move.run(this.#nextId(), id);
      }
      this.#readOld.clear();
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#lastId = before.lastId;
      this.#entries = before.entries;
      this.#readOld.clear();
      this.#rollBack();
      throw error;
    }
  }

  /**
   * Removes rows that do not count any more. Then removes some of the oldest entries, if the room for the next batches is too small.
   * Returns whether it must be called again.
   */
  evict(): boolean {
    if (this.#state.trim()) {
      return true;
    }
    const { pages, free, bytes } = this.#pages();
    const room = Math.min(this.#maxPages * FREE_SHARE, MAX_FREE_BYTES / bytes);
    if (this.#maxPages - pages + free >= room || this.#entries === 0) {
      return false;
    }
    this.#entries -= Number(this.#statements.evict.run(EVICTED_AT_ONCE).changes);
    this.#firstId = Number(this.#statements.first.get()?.first ?? this.#lastId);
    return true;
  }

  /** Returns the newest final block that was recorded for a part; undefined if there is none. */
  finalBlock(part: string): FinalBlock | undefined {
    const row = this.#statements.block.get(part);
    return row && { number: String(row.number), hash: String(row.hash) };
  }

  setFinalBlock(part: string, { number, hash: blockHash }: FinalBlock): void {
    this.#checkFiles();
    this.#partId(part);
    this.#statements.setBlock.run(number, blockHash, part);
  }

  /** Ends all entries of a part. Nothing finds them any more, and the eviction removes them. */
  clear(part: string): void {
    this.#statements.removePart.run(part);
    this.#parts.delete(part);
  }

  /** The known state of chains, for a read. */
  get state(): StateTable {
    return this.#state;
  }

  /** The known state of chains, for a write. */
  get writableState(): StateTable {
    this.#checkFiles();
    return this.#state;
  }

  /** Adds amounts to those of a day. Returns the units of each row. */
  addUsage(batch: UsageBatch): readonly number[] {
    this.#checkFiles();
    return this.#usage.add(batch);
  }

  /** Returns the amounts of a day; undefined if it has none. */
  usage(day: string): StoredUsage | undefined {
    return this.#usage.read(day);
  }

  /** Closes the files. A damaged database is removed. */
  close(isDamaged: boolean): void {
    try {
      this.#database.close();
      if (isDamaged) {
        removeDatabase(this.#folder);
      }
    } finally {
      this.#lock.release();
    }
  }

  /** Whether a file of the open database is gone. SQLite has the write-ahead log as long as the database is open. */
  get isRemoved(): boolean {
    const path = databasePath(this.#folder);
    return !(this.#lock.isHeld && existsSync(path) && existsSync(walPath(path)));
  }

  /** SQLite goes on with files that were removed. */
  #checkFiles(): void {
    if (this.isRemoved) {
      throw new FolderRemoved("the data folder was removed");
    }
  }

  #apply({ key, value, expiresMs }: EntryChange): void {
    const name = value === undefined ? this.#nameOf(key) : this.#newNameOf(key);
    if (name === undefined) {
      return;
    }
    const hashed = hashOf(name);
    this.#entries -= Number(this.#statements.remove.run(hashed, name).changes);
    if (value !== undefined) {
      this.#statements.add.run(this.#nextId(), hashed, name, Math.floor(expiresMs), value);
      this.#entries++;
    }
  }

  #nextId(): number {
    this.#lastId++;
    return this.#lastId;
  }

  /** Returns the key of an entry in the database; undefined if its part has no entries. */
  #nameOf(key: string): string | undefined {
    const part = partOf(key);
    const id = this.#parts.get(part);
    return id === undefined ? undefined : `${id}:${key.slice(part.length)}`;
  }

  #newNameOf(key: string): string {
    const part = partOf(key);
    return `${this.#partId(part)}:${key.slice(part.length)}`;
  }

  #partId(part: string): number {
    const known = this.#parts.get(part);
    if (known !== undefined) {
      return known;
    }
    const id = Number(this.#statements.addPart.run(part).lastInsertRowid);
    this.#parts.set(part, id);
    return id;
  }

  #pages(): { readonly pages: number; readonly free: number; readonly bytes: number } {
    const { pages, free, bytes } = this.#statements.pages.get() ?? {};
    return { pages: Number(pages), free: Number(free), bytes: Number(bytes) };
  }

  /** A part that the failed transaction created does not exist any more. */
  #rollBack(): void {
    if (this.#database.isTransaction) {
      this.#database.exec("ROLLBACK");
    }
    this.#readParts();
  }

  #readParts(): void {
    this.#parts.clear();
    for (const { id, name } of this.#statements.parts.all()) {
      this.#parts.set(String(name), Number(id));
    }
  }
}

interface OpenedDatabase {
  readonly database: DatabaseSync;
  readonly maxPages: number;
}

/** Opens the database of a folder. One of another version, or above the limit, is replaced by an empty one. */
const openDatabase = (folder: string, maxBytes: number): OpenedDatabase => {
  const path = databasePath(folder);
  createPrivateFile(path);
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec(`
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA temp_store = MEMORY;
      PRAGMA journal_size_limit = ${Math.floor(Math.min(WAL_BYTES, maxBytes * WAL_SHARE))};
    `);
    const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() ?? {};
    const bytes = Number(database.prepare("PRAGMA page_size").get()?.page_size);
    const walBytes = Math.min(2 * WAL_BYTES, maxBytes * WAL_SHARE);
    const maxPages = Math.floor((maxBytes - walBytes) / bytes);
    if (tables === 0) {
      database.exec(`BEGIN IMMEDIATE; ${TABLES} COMMIT`);
    } else if (!isCurrent(database) || pageCount(database) > maxPages) {
      database.close();
      removeDatabase(folder);
      return openDatabase(folder, maxBytes);
    }
    return { database, maxPages };
  } catch (error) {
    if (database.isOpen) {
      database.close();
    }
    throw error;
  }
};

const pageCount = (database: DatabaseSync): number => Number(database.prepare("PRAGMA page_count").get()?.page_count);

/** Throws if another program has created the database. */
const isCurrent = (database: DatabaseSync): boolean => {
  const application = database.prepare("PRAGMA application_id").get()?.application_id;
  if (application !== APPLICATION_ID) {
    throw new Error(`${database.location()} is a database of another program: choose another folder`);
  }
  return database.prepare("PRAGMA user_version").get()?.user_version === SCHEMA_VERSION;
};
