import assert from "node:assert/strict";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { askAll, isHit } from "../support/clients/askAll.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import {
  compared,
  createDataFolder,
  FINAL_CALLS,
  lateReads,
  PROBES,
  storeProbes,
  written,
} from "../support/servers/dataFolder.ts";

test("a restart without Redis serves final blocks, receipts and logs without calls to the node", async (t) => {
  const { start, asked, folder } = await createDataFolder(t);
  const before = await start();
  await storeProbes(before);
  const first = await askAll(before.url, FINAL_CALLS);
  await written(before, PROBES.length + FINAL_CALLS.length);
  await before.close();

  const calls = asked();
  const after = await start();
  await compared(after);
  const lateBefore = await lateReads(after);
  const second = await askAll(after.url, FINAL_CALLS);
  const late = (await lateReads(after)) - lateBefore;
  assert.deepEqual(
    second.map(({ result }) => result),
    first.map(({ result }) => result),
  );
  assert.ok(asked() - calls <= late, `${asked() - calls} calls, ${late} late`);
  const misses = second.filter((each) => !isHit(each, "disk"));
  assert.ok(misses.length <= late, second.map(({ cacheStatus }) => cacheStatus).join("\n"));
  assert.ok((await askAll(after.url, FINAL_CALLS)).every((each) => isHit(each, "memory")));

  const modes = await Promise.all([folder, join(folder, "forebay.db")].map(async (path) => (await stat(path)).mode));
  assert.deepEqual(
    modes.map((mode) => (mode & 0o777).toString(8)),
    ["700", "600"],
  );
});

test("a chain with another final block, or a lower head, gets nothing that was stored", async (t) => {
  const { start, node } = await createDataFolder(t);
  const before = await start();
  await askAll(before.url, FINAL_CALLS);
  await written(before);
  await before.close();

  node.chain.rewind(20);
  const after = await start({ mayFail: true });
  const answers = await askAll(after.url, FINAL_CALLS);
  assert.ok(answers.every((each) => each.result !== undefined && !isHit(each)));
});

test("a second process serves without the folder, and takes it over when it is free", async (t) => {
  const { start, asked } = await createDataFolder(t);
  const first = await start();
  const second = await start({ mayFail: true });
  await storeProbes(first);
  await askAll(first.url, FINAL_CALLS);
  await written(first, PROBES.length + FINAL_CALLS.length);
  assert.equal(await metric(second.opsUrl, "forebay_disk_up"), 0);
  await first.close();
  await until(async () => (await metric(second.opsUrl, "forebay_disk_up")) === 1, "the second process has the folder");
  await compared(second);
  const [calls, lateBefore] = [asked(), await lateReads(second)];
  await askAll(second.url, FINAL_CALLS);
  const late = (await lateReads(second)) - lateBefore;
  assert.ok(asked() - calls <= late, `${asked() - calls} calls, ${late} late`);
});

/** Returns a function that runs SQL in the database of a folder. */
const withSql =
  (sql: string) =>
  async (folder: string): Promise<void> => {
    const database = new DatabaseSync(join(folder, "forebay.db"));
    database.exec(sql);
    database.close();
  };

/** The largest number of SQLite. */
const LARGEST = 2n ** 63n - 1n;

const damage: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  "an entry with the largest id": withSql(
    `INSERT INTO entries SELECT ${LARGEST}, hash + 1, key || 'x', expires, value FROM entries LIMIT 1`,
  ),
  "an entry whose next id is no exact number": withSql(
    `INSERT INTO entries SELECT ${2 ** 53 - 1}, hash + 1, key || 'x', expires, value FROM entries LIMIT 1`,
  ),
  "a part with the largest id": withSql(
    `DELETE FROM parts; INSERT INTO parts (id, name) VALUES (${LARGEST}, 'forebay1:other:1:')`,
  ),
  "parts that had the largest id": withSql(`DELETE FROM parts; UPDATE sqlite_sequence SET seq = ${LARGEST}`),
  "entries that end after all times": withSql(`UPDATE entries SET expires = ${LARGEST}`),
  "a file of other bytes": (folder) => writeFile(join(folder, "forebay.db"), Buffer.alloc(20_000, "no database")),
  "an empty file": (folder) => writeFile(join(folder, "forebay.db"), ""),
  "another schema": withSql("PRAGMA user_version = 99"),
  "values that were changed": withSql("UPDATE entries SET value = substr(value, 1, length(value) - 3) || x'303030'"),
  "values of other keys": withSql("UPDATE entries SET value = (SELECT value FROM entries ORDER BY id LIMIT 1)"),
};

for (const [what, change] of Object.entries(damage)) {
  test(`after a restart with ${what}, all answers are right, and are stored again`, async (t) => {
    const { start, folder } = await createDataFolder(t);
    const before = await start();
    const truth = await askAll(before.url, FINAL_CALLS);
    await written(before);
    await before.close();
    await change(folder);

    const after = await start({ mayFail: true });
    let newest = 4;
    const answers = await askAll(after.url, FINAL_CALLS);
    assert.deepEqual(
      answers.map(({ result }) => result),
      truth.map(({ result }) => result),
    );
    await until(async () => (await metric(after.opsUrl, "forebay_disk_up")) === 1, "the folder works again");
    await until(async () => {
      await askAll(after.url, [{ method: "eth_getBlockReceipts", params: [`0x${(newest++).toString(16)}`] }]);
      return (await metric(after.opsUrl, "forebay_disk_entries")) > 0;
    }, "entries are stored again");
  });
}

test("a folder that is removed costs no request, and is noticed", async (t) => {
  const { start, folder } = await createDataFolder(t);
  const service = await start();
  const truth = await askAll(service.url, FINAL_CALLS);
  await written(service);
  await rm(folder, { recursive: true });
  const more = Array.from({ length: 20 }, (_, index) => ({
    method: "eth_getBlockReceipts",
    params: [`0x${(index + 4).toString(16)}`],
  }));
  const answers = await askAll(service.url, [...more, ...FINAL_CALLS]);
  assert.ok(answers.every(({ result }) => result !== undefined));
  assert.deepEqual(
    answers.slice(more.length).map(({ result }) => result),
    truth.map(({ result }) => result),
  );
  await until(
    async () => (await metric(service.opsUrl, "forebay_disk_errors_total", '"removed"')) > 0,
    "it is noticed",
  );
  assert.equal(await metric(service.opsUrl, "forebay_disk_up"), 0);
});

test("a folder that cannot be created costs no request", async (t) => {
  const { start, folder } = await createDataFolder(t);
  await writeFile(folder, "a file");
  const service = await start({ mayFail: true });
  const answers = await askAll(service.url, FINAL_CALLS);
  assert.ok(answers.every(({ result }) => result !== undefined));
  await until(async () => (await metric(service.opsUrl, "forebay_disk_errors_total")) > 0, "it is counted");
  assert.equal(await metric(service.opsUrl, "forebay_disk_up"), 0);
});

test("no entry is stored with cache.disk false, and nothing with Redis by default", async (t) => {
  const { start, folder } = await createDataFolder(t);
  const withRedis = await start({ cache: { redis: "redis://127.0.0.1:1" }, mayFail: true });
  await askAll(withRedis.url, FINAL_CALLS);
  await assert.rejects(readdir(folder), /ENOENT/);

  const service = await start({ cache: { disk: false }, mayFail: true });
  await askAll(service.url, FINAL_CALLS);
  // Usage is stored: this writes it.
  await until(async () => (await fetch(`${service.opsUrl}/usage?days=1`)).status === 200, "the folder is open");
  await service.close();
  const database = new DatabaseSync(join(folder, "forebay.db"));
  t.after(() => database.close());
  assert.equal(database.prepare("SELECT count(*) AS entries FROM entries").get()?.entries, 0);
});
