import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";

/** The names of forebay's files in `server.dataDir`. SQLite adds files whose names begin with that of the database. */
const DATABASE = "forebay.db";
const LOCK = "forebay.lock";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const ACCESS_OF_OTHERS = 0o077;

export const databasePath = (folder: string): string => join(folder, DATABASE);

/**
 * Creates the folder, or takes the access of other users from an existing one. A folder with files of other programs, or of
 * another user, keeps its mode: the files in it are private in any case.
 */
export const prepareFolder = (folder: string): void => {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  const { mode, uid } = statSync(folder);
  const isOwn = uid === process.getuid?.() && readdirSync(folder).every((name) => name.startsWith("forebay."));
  if (isOwn && (mode & ACCESS_OF_OTHERS) !== 0) {
    chmodSync(folder, FOLDER_MODE);
  }
};

/**
 * Creates a file that only this user may read. One of this user that exists is made such a file. SQLite gives its further files
 * the same mode.
 */
export const createPrivateFile = (path: string): void => {
  // Closing a file that SQLite has open would release SQLite's locks (POSIX, fcntl).
  if (!existsSync(path)) {
    closeSync(openSync(path, "a", FILE_MODE));
    return;
  }
  const { mode, uid } = statSync(path);
  if (uid === process.getuid?.() && (mode & ACCESS_OF_OTHERS) !== 0) {
    chmodSync(path, FILE_MODE);
  }
};

/** Removes the database. Only the process with the lock may do that. */
export const removeDatabase = (folder: string): void => {
  for (const name of readdirSync(folder).filter((each) => each.startsWith(DATABASE))) {
    rmSync(join(folder, name), { force: true });
  }
};

const isBusy = (error: unknown): boolean => error instanceof Error && error.message === "database is locked";

/** The right of one process to use the folder. The kernel releases it when the process ends, also after kill -9. */
export class FolderLock {
  readonly #lock: DatabaseSync;
  readonly #path: string;
  readonly #inode: number;

  private constructor(lock: DatabaseSync, path: string) {
    this.#lock = lock;
    this.#path = path;
    this.#inode = statSync(path).ino;
  }

  /** Returns undefined if another process has the lock. Throws if the folder cannot be used. */
  static take(folder: string): FolderLock | undefined {
    const path = join(folder, LOCK);
    createPrivateFile(path);
    const lock = new DatabaseSync(path, { timeout: 0 });
    try {
      lock.exec("BEGIN EXCLUSIVE");
      return new FolderLock(lock, path);
    } catch (error) {
      lock.close();
      if (isBusy(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Whether the folder still has the file that is locked. */
  get isHeld(): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode;
  }

  release(): void {
    this.#lock.close();
  }
}
