import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { startBin } from "../service/reloadedProcess.ts";
import { askAll, isHit } from "../support/clients/askAll.ts";
import { rpc } from "../support/clients/rpc.ts";
import { startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";
import { type ChainCall, createSealedChain, sharedCallsOf } from "../support/servers/sealedChain.ts";
import { extractBase, noBase, removedIn, renamedIn } from "./baseTree.ts";

const CALLS = 150;
const NOT_FOUND = { code: -32_000, message: "filter not found" };
/** Counts of calls are the same for all versions. */
const SHARED_KEY = /^forebay:limit/;

/** A real node, a Redis, and a configuration that the base tree accepts. */
const start = async (t: TestContext) => {
  const [chain, redis] = await Promise.all([createSealedChain(), startRedis(t)]);
  const folder = mkdtempSync(join(tmpdir(), "forebay-upgrade-"));
  t.after(async () => {
    await chain.devnet.close();
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, "forebay.json");
  const config = {
    server: { port: 0, opsPort: 0, drainDelayMs: 0, dataDir: join(folder, "data") },
    cache: { redis: redis.url, redisTimeoutMs: 5_000, disk: "always" },
    access: { limitPerAddress: { calls: 1_000_000, seconds: 3_600 }, limitStore: "redis" },
    chains: [
      {
        name: "main",
        chainId: chain.devnet.chainId,
        nodes: [{ name: "ours", url: chain.devnet.anvilUrl }],
        pending: { mode: "node" },
        forks: "prague",
        state: { follow: "plain" },
      },
    ],
  };
  writeFileSync(file, JSON.stringify(config));
  const calls = sharedCallsOf(chain, CALLS);
  const truth = (await askAll(chain.devnet.anvilUrl, calls)).map(({ result }) => result);
  assert.ok(truth.length >= CALLS && truth.every((result) => result !== undefined));
  return { file, redis, calls, truth };
};

interface Phase {
  /** Keys in Redis at the end. */
  readonly keys: readonly string[];
  /** Calls that the limit has counted: fewer than were made, if a reply of Redis was late. */
  readonly counted: number;
  readonly filter: string;
  /** Names of the metrics. */
  readonly metrics: ReadonlySet<string>;
}

/** Starts one version, and asserts that it returns the results of the node, first without and then with its own cache. */
const runPhase = async (
  t: TestContext,
  { file, redis, calls, truth }: Awaited<ReturnType<typeof start>>,
  { bin, foreignFilter }: { readonly bin?: string; readonly foreignFilter?: string },
): Promise<Phase> => {
  const { child, url, opsUrl, lines } = await startBin(t, file, bin);
  await untilRedisIsUsed({ opsUrl });
  const chainUrl = `${url}/main`;
  const results = async (some: readonly ChainCall[]) => (await askAll(chainUrl, some)).map(({ result }) => result);
  assert.deepEqual(await results(calls), truth);
  const again = await askAll(chainUrl, calls);
  assert.deepEqual(
    again.map(({ result }) => result),
    truth,
  );
  assert.ok(again.some((answer) => isHit(answer)));
  if (foreignFilter !== undefined) {
    assert.deepEqual((await rpc(chainUrl, "eth_getFilterChanges", [foreignFilter])).body.error, NOT_FOUND);
  }
  const filter = String((await rpc(chainUrl, "eth_newBlockFilter")).body.result);
  assert.deepEqual((await rpc(chainUrl, "eth_getFilterChanges", [filter])).body.result, []);
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const metrics = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = ""]) => name));
  child.kill("SIGTERM");
  await once(child, "exit");
  // On a busy machine, the data folder may be slow for a moment.
  const faults = lines.filter(({ level, msg }) => level !== "info" && !String(msg).includes(" is slow: "));
  assert.deepEqual(faults, [], "what the other version stored in the data folder is read, or dropped without a fault");
  const keys = await redis.admin.keys("*");
  const [limit = ""] = keys.filter((key) => SHARED_KEY.test(key));
  return { keys, counted: Number(await redis.admin.get(limit)), filter, metrics };
};

test("an update and the way back, with one configuration, Redis and data folder: results, limits, filters and metrics", {
  skip: noBase,
}, async (t) => {
  const bin = extractBase(t);
  const parts = await start(t);
  const base = await runPhase(t, parts, { bin });
  assert.ok(base.keys.length > CALLS / 3, `${base.keys.length} keys`);
  assert.ok(base.counted > 0);

  const now = await runPhase(t, parts, { foreignFilter: base.filter });
  assert.ok(now.counted > base.counted, "a limit goes on from the calls before the update");
  const changelog = readRepositoryFile("CHANGELOG.md");
  const renamed = renamedIn(changelog);
  const removed = removedIn(changelog);
  assert.deepEqual(
    [...base.metrics].filter((name) => !now.metrics.has(renamed.get(name) ?? name) && !removed.has(name)),
    [],
  );

  const back = await runPhase(t, parts, { bin, foreignFilter: now.filter });
  assert.ok(back.counted > now.counted);
});
