import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";

/** Changes chunks of the snapshots in a data folder, and their checksums. `change` returns whether it has changed the bytes. */
export const changeSnapshot = (folder: string, change: (bytes: Buffer, number: number) => boolean): void => {
  const database = new DatabaseSync(join(folder, "forebay.db"));
  let changed = 0;
  for (const { name, slot, number, value } of database.prepare("SELECT * FROM chunks").all()) {
    const bytes = Buffer.from(value instanceof Uint8Array ? value : assert.fail());
    if (change(bytes, Number(number))) {
      bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0);
      database
        .prepare("UPDATE chunks SET value = ? WHERE name = ? AND slot = ? AND number = ?")
        .run(new Uint8Array(bytes), String(name), Number(slot), Number(number));
      changed++;
    }
  }
  database.close();
  assert.ok(changed > 0);
};
