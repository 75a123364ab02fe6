/** Why the storage failed. It is also a label of a metric. */
export type StorageFault = "corrupt" | "full" | "readonly" | "removed" | "other";

/** The codes of SQLite's errors: https://sqlite.org/rescode.html */
const OF_SQLITE: Readonly<Record<number, StorageFault>> = { 8: "readonly", 11: "corrupt", 13: "full", 26: "corrupt" };
const OF_CODE: Readonly<Record<string, StorageFault>> = {
  // A number of a row is too large.
  ERR_OUT_OF_RANGE: "corrupt",
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "readonly",
  EACCES: "readonly",
  EPERM: "readonly",
};
/** An extended code of SQLite has the primary one in its lowest byte. */
const PRIMARY = 0xff;

/** The files of an open database are gone. */
export class FolderRemoved extends Error {
  override readonly name = "FolderRemoved";
}

/** The database has values that this program never writes. */
export class DamagedDatabase extends Error {
  override readonly name = "DamagedDatabase";
}

/** Returns the cause of an error of SQLite or of the file system. */
export const storageFault = (error: unknown): StorageFault => {
  if (error instanceof FolderRemoved) {
    return "removed";
  }
  if (error instanceof DamagedDatabase) {
    return "corrupt";
  }
  const { code, errcode }: { code?: unknown; errcode?: unknown } = Object(error);
  const ofSqlite = typeof errcode === "number" ? OF_SQLITE[errcode & PRIMARY] : undefined;
  return ofSqlite ?? OF_CODE[String(code)] ?? "other";
};
