import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";

/** Changes blocks of rows of known state in a data folder, and their checksums. `change` returns whether it has changed the bytes. */
export const changeRows = (folder: string, change: (bytes: Buffer) => boolean): void => {
  const database = new DatabaseSync(join(folder, "forebay.db"));
  let changed = 0;
  for (const { chain, number, rows } of database.prepare("SELECT * FROM state_rows").all()) {
    const bytes = Buffer.from(rows instanceof Uint8Array ? rows : assert.fail());
    if (change(bytes)) {
      bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0);
      database
        .prepare("UPDATE state_rows SET rows = ? WHERE chain = ? AND number = ?")
        .run(new Uint8Array(bytes), String(chain), Number(number));
      changed++;
    }
  }
  database.close();
  assert.ok(changed > 0);
};
