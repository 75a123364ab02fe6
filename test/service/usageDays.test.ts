import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import { z } from "zod";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";

const KEYS = ["wallet", "indexer"];
const PRICE_OF_BALANCE = 20;

const amounts = z.object({ calls: z.number(), units: z.number() });
const report = z.object({
  total: amounts,
  daysFrom: z.string(),
  days: z.array(
    z.object({
      day: z.iso.date(),
      since: z.iso.datetime(),
      keys: z.array(amounts.extend({ key: z.string() })),
      total: amounts,
      bill: amounts,
    }),
  ),
});

interface Options {
  readonly cache?: { readonly redis: string };
  readonly dataDir?: string;
}

/** Returns functions that start replicas in front of one node: in this process, or with two serving processes. */
const createReplicas = async (t: TestContext) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const chain = {
    nodes: [{ url: node.url }],
    pending: { mode: "node" as const },
    state: { follow: false as const },
  };
  const rest = ({ cache, dataDir }: Options) => ({
    access: { keys: KEYS.map((name) => ({ name, sha256: createHash("sha256").update(name).digest("hex") })) },
    ...(cache && { cache }),
    ...(dataDir !== undefined && { server: { dataDir } }),
  });
  return {
    start: async (options: Options) => {
      const service = await createService(chain, rest(options));
      t.after(() => service.close());
      return service;
    },
    startTwo: (options: Options) => startProcesses(t, { chains: [{ name: "chain", ...chain }], ...rest(options) }),
  };
};

interface Replica {
  readonly url: string;
  readonly opsUrl: string;
}

const call = async ({ url }: Replica, key: string, times: number): Promise<void> => {
  for (let count = 0; count < times; count++) {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBalance", params: [`0x${"0".repeat(40)}`, "0x1"] }),
    });
    assert.equal(response.status, 200);
    await response.text();
  }
};

const ask = ({ opsUrl }: Replica, query: string) => fetch(`${opsUrl}/usage${query}`);

/** Returns where the days come from, and the calls of all days by key. A test may run at midnight. */
const readDays = async (replica: Replica) => {
  const response = await ask(replica, "?days=2");
  assert.equal(response.status, 200, await response.clone().text());
  const { daysFrom, days } = report.parse(await response.json());
  const calls = new Map<string, number>();
  for (const day of days) {
    assert.ok(Date.parse(day.since) >= Date.parse(day.day) && Date.parse(day.since) <= Date.now());
    for (const { key, calls: ofDay, units } of day.keys) {
      assert.equal(units, ofDay * PRICE_OF_BALANCE);
      calls.set(key, (calls.get(key) ?? 0) + ofDay);
    }
  }
  return { daysFrom, calls: KEYS.map((key) => calls.get(key) ?? 0), bill: days.map((day) => day.bill.calls) };
};

/** Waits until all usage is written, and sees that no more comes. */
const untilCalls = async (replica: Replica, from: string, expected: readonly number[]): Promise<void> => {
  await until(async () => {
    const { daysFrom, calls } = await readDays(replica);
    assert.equal(daysFrom, from);
    assert.ok(
      calls.every((count, index) => count <= (expected[index] ?? 0)),
      `counted twice: ${calls}`,
    );
    return calls.every((count, index) => count === expected[index]);
  }, `the days have ${expected} calls`);
};

test("with Redis, the days have the sums of two replicas, also after a restart", async (t) => {
  const [{ start, startTwo }, redis] = await Promise.all([createReplicas(t), startRedis(t)]);
  const cache = { redis: redis.url };
  const one = await startTwo({ cache });
  const other = await start({ cache });
  await Promise.all([call(one, "wallet", 30), call(other, "wallet", 12), call(other, "indexer", 5)]);
  await untilCalls(one, "redis", [42, 5]);
  await untilCalls(other, "redis", [42, 5]);

  // The last usage is written when the processes end.
  await call(one, "indexer", 3);
  one.signal("SIGTERM");
  assert.equal(await one.ended, 0);
  const again = await start({ cache });
  await untilCalls(again, "redis", [42, 8]);
  await call(again, "wallet", 1);
  await untilCalls(other, "redis", [43, 8]);
  const { total } = report.omit({ days: true, daysFrom: true }).parse(await (await ask(again, "")).json());
  assert.equal(total.calls, 1);
  for (const key of await redis.admin.keys("forebay:usage*")) {
    assert.ok((await redis.admin.ttl(key)) > 34 * 86_400);
  }
});

test("what is counted while Redis is lost is written when it is back, and counts once", async (t) => {
  const [{ start }, redis] = await Promise.all([createReplicas(t), startRedis(t)]);
  const cache = { redis: redis.url };
  const one = await start({ cache });
  await call(one, "wallet", 10);
  await untilCalls(one, "redis", [10, 0]);
  redis.signal("SIGSTOP");
  await call(one, "wallet", 7);
  // The command is sent, and runs when the server goes on, although nobody waits for its reply any more.
  const lost = await ask(one, "?days=1");
  assert.equal(lost.status, 503);
  assert.match(await lost.text(), /cannot be read now/);
  assert.equal((await ask(one, "")).status, 200);
  redis.signal("SIGCONT");
  await until(async () => (await ask(one, "?days=1")).status === 200, "Redis is back");
  await untilCalls(one, "redis", [17, 0]);
  await call(one, "indexer", 4);
  await one.close();
  await untilCalls(await start({ cache }), "redis", [17, 4]);
});

test("without Redis and data folder, the days are those since the start, and a wrong number of days is an error", async (t) => {
  const { start } = await createReplicas(t);
  const one = await start({});
  await call(one, "wallet", 3);
  await untilCalls(one, "memory", [3, 0]);
  for (const days of ["0", "36", "-1", "1.5", "all", ""]) {
    const response = await ask(one, `?days=${days}`);
    assert.deepEqual([response.status, await response.text()], [400, "days must be an integer from 1 to 35\n"]);
  }
  const { days } = report.partial().parse(await (await ask(one, "")).json());
  assert.equal(days, undefined);
});
