import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";
import {
  callWithKey,
  createReplicas,
  createUsageFolder,
  readNewBalances,
  untilCalls,
} from "../support/servers/usageReplicas.ts";

const DAY_MS = 86_400_000;

/** Reads balances, in one body, until each is refused. Returns the last response. */
const untilRefused = async (replica: Parameters<typeof readNewBalances>[0], times: number) => {
  let response = await readNewBalances(replica, "wallet", times);
  await until(async () => {
    response = await readNewBalances(replica, "wallet", times);
    return response.answers.every(({ error }) => error !== undefined);
  }, "the key has spent its units");
  return response;
};

const KILLS = 4;
/** What a killed process may lose. */
const LOST_MS = 2_000;
const CALLS = 25;

test("kill -9 loses usage of at most two seconds", async (t) => {
  const { startAsCommand } = await createReplicas(t);
  const dataDir = await createUsageFolder(t);
  for (let kill = 0; kill <= KILLS; kill++) {
    const forebay = await startAsCommand({ dataDir });
    await untilCalls(forebay, "folder", [kill * CALLS, 0]);
    await callWithKey(forebay, "wallet", CALLS);
    await wait(LOST_MS);
    process.kill(forebay.pid, "SIGKILL");
    await forebay.ended;
  }
});

test("two replicas refuse all calls of a key that has spent its units of the day, and the next process too", async (t) => {
  const [{ start, startAsCommand }, redis] = await Promise.all([createReplicas(t), startRedis(t)]);
  const options = { cache: { redis: redis.url }, unitsPerDay: 400 };
  const one = await startAsCommand(options);
  const other = await start(options);
  const firstTen = await readNewBalances(one, "wallet", 10);
  assert.ok(firstTen.answers.every(({ result }) => result === "0x1"));
  // Known answers cost no units.
  await callWithKey(other, "wallet", 30);
  const lastTen = await readNewBalances(other, "wallet", 9);
  assert.ok(lastTen.answers.every(({ result }) => result === "0x1"));
  for (const replica of [one, other]) {
    const ratio = () => metric(replica.opsUrl, "forebay_key_budget_ratio", 'key="wallet"');
    await until(async () => (await ratio()) >= 1, "it knows what both have spent");
    const refused = await untilRefused(replica, 1);
    const { error } = refused.answers[0] ?? {};
    const endsAt = new Date((Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS).toISOString();
    assert.deepEqual(
      [refused.status, error?.code, error?.message],
      [429, -32_005, "the 400 units of today are spent: wait until 00:00 UTC"],
    );
    assert.deepEqual([error?.data?.unitsPerDay, error?.data?.endsAt], [400, endsAt]);
    assert.ok(Number(error?.data?.spentUnits) >= 400);
    const waitMs = Number(refused.headers.get("retry-after")) * 1_000;
    assert.ok(Math.abs(Date.now() + waitMs - Date.parse(endsAt)) < 60_000, `${waitMs}`);
    assert.equal((await untilRefused(replica, 3)).status, 200);
    assert.ok((await metric(replica.opsUrl, "forebay_access_refused_total", 'reason="units"')) >= 4);
    // A key without a budget is served.
    assert.equal((await readNewBalances(replica, "indexer")).status, 200);
  }
  await until(
    () =>
      one.lines.some(
        ({ msg, clientId }) => clientId === "wallet" && String(msg).startsWith("the units of today are spent"),
      ),
    "the replica has logged it",
  );
  const next = await start(options);
  await untilRefused(next, 1);
});
