import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import type { CacheEntry } from "../../src/cache/cacheEntry.ts";
import { decodeValue, encodeValue } from "../../src/cache/redisValue.ts";
import { type EntryChange, EntryDatabase } from "../../src/storage/entryDatabase.ts";
import { storageFault } from "../../src/storage/storageFault.ts";

const MAX_BYTES = 16 * 1024 * 1024;
const PART = "forebay1:1:00:";

const createFolder = async (t: TestContext) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-entries-"));
  const opened: EntryDatabase[] = [];
  t.after(async () => {
    for (const database of opened) {
      database.close(false);
    }
    await rm(folder, { recursive: true, force: true });
  });
  return {
    folder,
    open: (maxBytes = MAX_BYTES): EntryDatabase => {
      const database = EntryDatabase.open(folder, maxBytes) ?? assert.fail("it is locked");
      opened.push(database);
      return database;
    },
    close: (database: EntryDatabase): void => {
      opened.splice(opened.indexOf(database), 1);
      database.close(false);
    },
  };
};

const entry = (name: string, bytes = 10, expiresMs = Date.now() + 60_000): EntryChange => ({
  key: PART + name,
  value: Buffer.alloc(bytes, name),
  expiresMs,
});

const has = (database: EntryDatabase, name: string): boolean => database.read([PART + name])[0] !== undefined;

test("entries are read in the order of the keys, also after they were written again", async (t) => {
  const { open, close } = await createFolder(t);
  const database = open();
  database.write([entry("a"), entry("b")]);
  database.write([{ ...entry("b"), value: Buffer.from("new") }]);
  close(database);
  const again = open();
  const values = again
    .read([`${PART}b`, `${PART}c`, `${PART}a`])
    .map((value) => value && Buffer.from(value).toString());
  assert.deepEqual(values, ["new", undefined, "aaaaaaaaaa"]);
  assert.equal(again.size.entries, 2);
});

test("an entry that has expired, or was removed, is a miss", async (t) => {
  const { open } = await createFolder(t);
  const database = open();
  database.write([entry("old", 10, Date.now() - 1), entry("gone"), entry("here")]);
  database.write([{ key: `${PART}gone`, value: undefined, expiresMs: 0 }]);
  assert.deepEqual(
    ["old", "gone", "here"].map((name) => has(database, name)),
    [false, false, true],
  );
});

test("the entries of a part end together, and those of others stay", async (t) => {
  const { open, close } = await createFolder(t);
  const database = open();
  database.write([entry("a"), { ...entry("a"), key: "forebay1:2:00:a" }]);
  database.setFinalBlock(PART, { number: "7", hash: "0x07" });
  database.clear(PART);
  assert.deepEqual([has(database, "a"), database.read(["forebay1:2:00:a"])[0] !== undefined], [false, true]);
  assert.equal(database.finalBlock(PART), undefined);
  database.write([entry("b")]);
  close(database);
  const again = open();
  assert.deepEqual([has(again, "a"), has(again, "b")], [false, true]);
});

test("the files stay below the limit, and the newest entries stay", async (t) => {
  const { open, folder } = await createFolder(t);
  const database = open();
  for (let batch = 0; batch < 80; batch++) {
    database.write(Array.from({ length: 50 }, (_, index) => entry(`${batch * 50 + index}`, 8_000)));
    while (database.evict()) {
      assert.ok(database.size.entries > 0);
    }
    const files = await readdir(folder);
    const sizes = await Promise.all(files.map(async (name) => (await stat(join(folder, name))).size));
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(bytes <= MAX_BYTES, `${bytes} bytes`);
  }
  assert.equal(has(database, "0"), false);
  assert.ok(has(database, "3999"));
  assert.ok(database.size.entries > 800, `${database.size.entries} entries`);
});

test("an entry that is read while it is old outlives those that are not", async (t) => {
  const { open } = await createFolder(t);
  const database = open();
  for (let batch = 0; batch < 80; batch++) {
    database.write(Array.from({ length: 50 }, (_, index) => entry(`${batch * 50 + index}`, 8_000)));
    assert.ok(has(database, "0"));
    while (database.evict()) {
      assert.ok(database.size.entries > 0);
    }
  }
  assert.equal(has(database, "1"), false);
});

test("a second user of the folder gets nothing until the first one has ended", async (t) => {
  const { open, close, folder } = await createFolder(t);
  const database = open();
  assert.equal(EntryDatabase.open(folder, MAX_BYTES), undefined);
  close(database);
  assert.ok(open());
});

test("a database above a lowered limit is replaced by an empty one", async (t) => {
  const { open, close, folder } = await createFolder(t);
  const large = open(4 * MAX_BYTES);
  large.write(Array.from({ length: 80 }, (_, index) => entry(`${index}`, 500_000)));
  close(large);
  assert.ok((await stat(join(folder, "forebay.db"))).size > MAX_BYTES);
  const small = open();
  assert.equal(small.size.entries, 0);
  assert.ok(small.size.bytes <= MAX_BYTES);
  small.write([entry("a")]);
  close(small);
  assert.ok(has(open(), "a"));
});

test("a database of another program is kept, and opening it fails", async (t) => {
  const { folder } = await createFolder(t);
  const path = join(folder, "forebay.db");
  const other = new DatabaseSync(path);
  other.exec("CREATE TABLE notes (text); INSERT INTO notes VALUES ('kept')");
  other.close();
  assert.throws(() => EntryDatabase.open(folder, MAX_BYTES), /is a database of another program/);
  const again = new DatabaseSync(path);
  t.after(() => again.close());
  assert.equal(again.prepare("SELECT text FROM notes").get()?.text, "kept");
});

test("files that exist become private", async (t) => {
  const { open, folder } = await createFolder(t);
  const paths = ["forebay.db", "forebay.lock"].map((name) => join(folder, name));
  for (const path of paths) {
    await writeFile(path, "");
    await chmod(path, 0o644);
  }
  open();
  const modes = await Promise.all(paths.map(async (path) => (await stat(path)).mode & 0o777));
  assert.deepEqual(modes, [0o600, 0o600]);
});

const DAMAGED_BYTES = 64;

test("a damaged page gives misses or an error, and never a wrong value", async (t) => {
  const { open, close, folder } = await createFolder(t);
  const first = open();
  const names = Array.from({ length: 300 }, (_, index) => `${index}`);
  const entryOf = (name: string): CacheEntry => ({ body: Buffer.from(`"${name}"`), isFinal: true, storedAtMs: 1 });
  const values = await Promise.all(names.map((name) => encodeValue(PART + name, entryOf(name))));
  first.write(names.map((name, index) => ({ ...entry(name), value: values[index] })));
  close(first);
  const path = join(folder, "forebay.db");
  const whole = await readFile(path);
  let right = 0;
  for (let at = 200; at < whole.length; at += 1_024) {
    const damaged = Buffer.from(whole);
    damaged.fill(0xa5, at, at + DAMAGED_BYTES);
    await writeFile(path, damaged);
    for (const name of ["forebay.db-wal", "forebay.db-shm"]) {
      await rm(join(folder, name), { force: true });
    }
    let database: EntryDatabase | undefined;
    try {
      database = EntryDatabase.open(folder, MAX_BYTES);
      for (const name of names) {
        const [value] = database?.read([PART + name]) ?? [];
        const decoded = value && (await decodeValue(PART + name, Buffer.from(value)).catch(() => undefined));
        assert.ok(decoded === undefined || Buffer.from(decoded.body).toString() === `"${name}"`, name);
        right += decoded === undefined ? 0 : 1;
      }
    } catch (error) {
      assert.ok(["corrupt", "other"].includes(storageFault(error)), String(error));
    } finally {
      database?.close(false);
    }
  }
  assert.ok(right > 1_000, `${right} values were read`);
});
