import { closeSync, existsSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const PAGE_BYTES = 4_096;
const DATABASE = "forebay.db";

/** A page of a file in the data folder. */
export interface FolderPage {
  /** What SQLite has there. */
  readonly name: string;
  readonly file: string;
  /** Where the damage begins, in bytes. */
  readonly at: number;
}

const pagesOf = (folder: string, file: string): number =>
  existsSync(join(folder, file)) ? Math.floor(statSync(join(folder, file)).size / PAGE_BYTES) : 0;

/** Lists the header, the root of each table and index, and `spread` pages in equal distances, of the database and of its write-ahead log. */
export const listPages = async (folder: string, spread: number): Promise<readonly FolderPage[]> => {
  // Reading it would merge the write-ahead log.
  const copy = `${folder}-listed`;
  await cp(folder, copy, { recursive: true });
  const database = new DatabaseSync(join(copy, DATABASE));
  const roots = database.prepare("SELECT name, rootpage AS page FROM sqlite_schema WHERE rootpage > 1").all();
  database.close();
  const inside = (file: string): FolderPage[] => {
    const pages = pagesOf(folder, file);
    return Array.from({ length: Math.min(spread, pages) }, (_, index) => ({
      name: `${index + 1} of ${spread} in ${file}`,
      file,
      at: Math.floor(((index + 0.5) / Math.min(spread, pages)) * pages) * PAGE_BYTES + PAGE_BYTES / 4,
    }));
  };
  return [
    { name: "header", file: DATABASE, at: 0 },
    ...roots.map(({ name, page }) => ({
      name: `root of ${name}`,
      file: DATABASE,
      at: (Number(page) - 1) * PAGE_BYTES,
    })),
    ...inside(DATABASE),
    { name: "header of the log", file: `${DATABASE}-wal`, at: 0 },
    ...inside(`${DATABASE}-wal`),
  ];
};

/** Inverts half a page. Behind the begin of a page, SQLite itself does not notice that. */
export const damagePage = (folder: string, { file, at }: FolderPage): void => {
  const path = join(folder, file);
  if (!existsSync(path)) {
    return;
  }
  const descriptor = openSync(path, "r+");
  const bytes = Buffer.alloc(PAGE_BYTES / 2);
  const length = readSync(descriptor, bytes, 0, bytes.length, at);
  const inverted = bytes.map((byte) => ~byte);
  writeSync(descriptor, inverted, 0, length, at);
  closeSync(descriptor);
};
