import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { StoredChain } from "../../src/cache/storedChain.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { DataStorage } from "../../src/storage/dataStorage.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";

const PART = "forebay1:1:00:";
const KEY = `${PART}final:10:x`;
const MAX_BYTES = 16 * 1024 * 1024;
/** Above the time after which the nodes are asked again. */
const RETRY_MS = 5_000;

const telemetry = createTelemetry({ level: "silent" });

/** A chain with entries in a new folder. Its final block is 10 of the branch `a`. */
const createStored = async (t: TestContext) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-chain-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const storage = new DataStorage({ folder, maxBytes: MAX_BYTES, entry: workerEntry("storage"), telemetry });
  t.after(() => storage.close());
  let asked = 0;
  let branch: string | undefined = "a";
  const ended = new AbortController();
  t.after(() => ended.abort());
  const hashOf = (number: bigint): Hash => `0x${branch}${number}`;
  const chain = new StoredChain({
    ...{ chain: "test", storage, keys: { prefix: PART }, telemetry, signal: ended.signal },
    isStored: async () => true,
    hashAt: async (number) => {
      asked++;
      return branch === undefined ? undefined : hashOf(number);
    },
  });
  const finalize = (number: bigint): void =>
    chain.onHeads({ finalized: { number, hash: hashOf(number) }, at: () => undefined });
  await until(async () => storage.isOpen(PART), "the part is open");
  finalize(10n);
  await storage.write([{ key: KEY, value: Buffer.from("value"), expiresMs: Date.now() + 600_000 }]);
  return {
    storage,
    finalize,
    setBranch: (next: string | undefined) => {
      branch = next;
    },
    has: async () => (await storage.read([KEY]))[0] !== undefined,
    asked: () => asked,
    retry: () => t.mock.timers.tick(RETRY_MS),
  };
};

test("entries of a final block that was replaced are removed, also if finality went back and on", async (t) => {
  const { storage, finalize, setBranch, has, retry } = await createStored(t);
  assert.ok(await has());
  setBranch("b");
  finalize(8n);
  assert.equal(storage.isOpen(PART), false);
  finalize(12n);
  await until(() => {
    retry();
    return storage.isOpen(PART);
  }, "the part is open again");
  assert.equal(await has(), false);
});

test("the kind of a node is asked again after an error", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-chain-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const storage = new DataStorage({ folder, maxBytes: MAX_BYTES, entry: workerEntry("storage"), telemetry });
  t.after(() => storage.close());
  const ended = new AbortController();
  t.after(() => ended.abort());
  let asked = 0;
  const chain = new StoredChain({
    ...{ chain: "test", storage, keys: { prefix: PART }, telemetry, signal: ended.signal },
    isStored: async () => {
      asked++;
      if (asked === 1) {
        throw new Error("no node responds");
      }
      return true;
    },
    hashAt: async () => undefined,
  });
  assert.ok(chain);
  await until(() => {
    t.mock.timers.tick(RETRY_MS);
    return storage.isOpen(PART);
  }, "the part is open");
  assert.equal(asked, 2);
});

test("entries stay while no node has the newest final block, and are not served", async (t) => {
  const { storage, finalize, setBranch, has, asked, retry } = await createStored(t);
  setBranch(undefined);
  finalize(8n);
  await until(async () => {
    retry();
    assert.equal(storage.isOpen(PART), false);
    return asked() === 2;
  }, "the nodes are asked again");
  setBranch("a");
  await until(async () => {
    retry();
    return storage.isOpen(PART);
  }, "the part is open again");
  assert.ok(await has());
});
