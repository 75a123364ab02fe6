import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { DataStorage } from "../../src/storage/dataStorage.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const MAX_BYTES = 16 * 1024 * 1024;
const PART = "forebay1:1:00:";
const KEY = `${PART}a`;
const LATER = Date.now() + 600_000;

const createFolder = async (t: TestContext): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-storage-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
};

const open = async (t: TestContext, existing?: string) => {
  const folder = existing ?? (await createFolder(t));
  const telemetry = createTelemetry({ level: "silent" });
  const storage = new DataStorage({ folder, maxBytes: MAX_BYTES, entry: workerEntry("storage"), telemetry });
  t.after(() => storage.close());
  const opened = Promise.withResolvers<void>();
  t.after(storage.onOpened(opened.resolve));
  await opened.promise;
  const read = async (): Promise<string | undefined> => {
    const [value] = await storage.read([KEY]);
    return value && Buffer.from(value).toString();
  };
  return { storage, read, metrics: telemetry.metrics };
};

const write = (storage: DataStorage, value: Uint8Array | undefined, key = KEY): Promise<void> =>
  storage.write([{ key, value, expiresMs: LATER }]);

test("a part is neither read nor written before it is open", async (t) => {
  const { storage, read } = await open(t);
  await write(storage, Buffer.from("early"));
  await storage.openPart(PART, async () => assert.fail("no block is known"));
  assert.equal(await read(), undefined);
  await write(storage, Buffer.from("right"));
  storage.setFinalBlock(PART, { number: "7", hash: "0x07" });
  assert.equal(await read(), "right");
});

test("a full folder is read on, and an entry that must be removed is not served", async (t) => {
  const { storage, read, metrics } = await open(t);
  await storage.openPart(PART, async () => true);
  await write(storage, Buffer.from("old"));
  assert.equal(await read(), "old");
  await write(storage, Buffer.alloc(2 * MAX_BYTES), `${PART}large`);
  const { values } = await metrics.diskErrors.get();
  assert.equal(values.find(({ labels }) => labels.reason === "full")?.value, 1);
  assert.equal(await read(), "old");
  await write(storage, undefined);
  assert.equal(await read(), undefined);
  assert.equal(storage.isOpen(PART), false);
});

test("an entry that is removed before its part is open is not served", async (t) => {
  const folder = await createFolder(t);
  const before = await open(t, folder);
  await before.storage.openPart(PART, async () => true);
  await write(before.storage, Buffer.from("wrong"));
  before.storage.setFinalBlock(PART, { number: "7", hash: "0x07" });
  await before.storage.close();

  const early = await open(t, folder);
  await write(early.storage, undefined);
  await early.storage.openPart(PART, async () => true);
  assert.equal(await early.read(), undefined);
  await write(early.storage, Buffer.from("wrong"));
  early.storage.setFinalBlock(PART, { number: "7", hash: "0x07" });
  await early.storage.close();

  const during = await open(t, folder);
  await during.storage.openPart(PART, async () => {
    await write(during.storage, undefined);
    return true;
  });
  assert.equal(await during.read(), undefined);
  assert.ok(during.storage.isOpen(PART));
});

test("a part that a full folder closed is emptied and opened later", async (t) => {
  const { storage, read } = await open(t);
  await storage.openPart(PART, async () => true);
  await write(storage, Buffer.from("wrong"));
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await write(storage, Buffer.alloc(2 * MAX_BYTES), `${PART}large`);
  await write(storage, undefined);
  let opening = Promise.resolve();
  let calls = 0;
  t.after(
    storage.onOpened(() => {
      calls++;
      opening = storage.openPart(PART, async () => true);
    }),
  );
  // `onOpened` calls the listener at once: here too the part may be opened again.
  await opening;
  assert.deepEqual([calls, storage.isOpen(PART), await read()], [1, true, undefined]);
  await write(storage, undefined);
  assert.equal(storage.isOpen(PART), false);
  t.mock.timers.tick(10_000);
  await opening;
  assert.deepEqual([calls, storage.isOpen(PART), await read()], [2, true, undefined]);
});

test("whatever fails in a folder that was removed, the fault is that it was removed", async (t) => {
  const folder = await createFolder(t);
  const before = await open(t, folder);
  await before.storage.openPart(PART, async () => true);
  await write(before.storage, randomBytes(MAX_BYTES / 8));
  await before.storage.close();
  const { storage, read, metrics } = await open(t, folder);
  await storage.openPart(PART, async () => true);
  const faults = async () => {
    const { values } = await metrics.diskErrors.get();
    return values.filter(({ value }) => value > 0).map(({ labels }) => labels.reason);
  };
  assert.deepEqual(await faults(), []);
  await truncate(join(folder, "forebay.db"), 4096);
  await rm(folder, { recursive: true });
  assert.equal(await read(), undefined);
  assert.deepEqual(await faults(), ["removed"]);
});

test("a new final block finds that the folder was removed", async (t) => {
  const folder = await createFolder(t);
  const { storage, metrics } = await open(t, folder);
  await storage.openPart(PART, async () => true);
  await rm(folder, { recursive: true });
  storage.setFinalBlock(PART, { number: "7", hash: "0x07" });
  // It is answered after the one before.
  await storage.read([KEY]);
  const { values } = await metrics.diskErrors.get();
  assert.equal(values.find(({ labels }) => labels.reason === "removed")?.value, 1);
});
