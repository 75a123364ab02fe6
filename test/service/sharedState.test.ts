import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Address } from "../../src/ethereum/hex.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { followHead } from "../support/servers/followHead.ts";
import { type RedisServer, startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";

/** Long, so that no read is late on a busy machine. The tests refresh the heads themselves. */
const LONG_MS = 20_000;
/** For a wait of half of it that ends. Reads of clients wait no longer, so the tests await the write set first. */
const BLOCK_MS = 2_000;
const STATE_HIT = "forebay; hit; detail=state";
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const [ALICE = "0x", BOB = "0x"] = ACCOUNTS;
const LIST = "eth_getBlockAccessList";
const TRACE = "debug_traceBlockByHash";

type Source = "accessList" | "trace";
const FORKS = { accessList: "amsterdam", trace: "prague" } as const;
const METHODS = { accessList: LIST, trace: TRACE } as const;

/** A chain with one node, and a Redis for its replicas. No answer is compared by chance. */
const createRig = async (t: TestContext, source: Source) => {
  t.mock.method(Math, "random", () => 0.5);
  const chain = new StandInChain(FORKS[source]);
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const redis = await startRedis(t);
  const startNode = () => startWorldNode(t, chain, { traces: source === "trace" ? "geth" : undefined });
  const node = await startNode();
  const start = (options: Partial<ServiceChain> = {}) =>
    startReplica(t, redis, chain, {
      ...{ nodes: [{ url: node.url, name: "own" }], blockTimeMs: LONG_MS, forks: FORKS[source] },
      ...options,
      state: { source, waitMs: LONG_MS, ...options.state },
    });
  const reads = (of = node) => of.calls.get(METHODS[source]) ?? 0;
  const asked = () => node.calls.get("eth_getBalance") ?? 0;
  return { chain, redis, node, startNode, start, reads, asked };
};

type Replica = Awaited<ReturnType<typeof startReplica>>;

const startReplica = async (t: TestContext, redis: RedisServer, chain: StandInChain, options: ServiceChain) => {
  const service = await createService(options, { cache: { redis: redis.url, redisTimeoutMs: 1_000 } });
  t.after(() => service.close());
  await untilRedisIsUsed(service);
  const balance = async (address: Address) => {
    const { body, headers } = await rpc(service.url, "eth_getBalance", [address, "latest"]);
    return { result: body.result, isHit: headers.get("cache-status") === STATE_HIT };
  };
  const outcome = (name: string) => metric(service.opsUrl, "forebay_state_write_sets_total", `outcome="${name}"`);
  return {
    service,
    balance,
    outcome,
    /** Takes the newest head, and waits until its write set is applied. */
    apply: async (): Promise<void> => {
      const applied = () => metric(service.opsUrl, "forebay_state_write_set_seconds_count");
      const before = await applied();
      await followHead(service, chain);
      await until(async () => (await applied()) > before, "the write set is applied");
    },
    spent: () => metric(service.opsUrl, "forebay_state_units_spent_total", 'purpose="writeSets"'),
    /** Takes the newest head, and reads all balances. Returns the number of hits. */
    turn: async (): Promise<number> => {
      await followHead(service, chain);
      const read = await Promise.all(ACCOUNTS.map(balance));
      return read.filter(({ isHit }) => isHit).length;
    },
  };
};

/** Seals blocks until all balances are known everywhere. */
const learn = async (chain: StandInChain, replicas: readonly Replica[]): Promise<void> => {
  for (let count = 0, hits = 0; hits < replicas.length * ACCOUNTS.length; count++) {
    assert.ok(count < 200, "the balances become known");
    chain.mine();
    const turns = await Promise.all(replicas.map(({ turn }) => turn()));
    hits = turns.reduce((sum, each) => sum + each, 0);
  }
};

const spentBy = async (replicas: readonly Replica[]): Promise<number> =>
  (await Promise.all(replicas.map(({ spent }) => spent()))).reduce((sum, each) => sum + each, 0);

const writeSetKeys = async ({ admin }: RedisServer): Promise<readonly string[]> => admin.keys("*:writes*");

for (const source of ["accessList", "trace"] as const) {
  test(`one of two replicas reads the write set of a block: ${source}`, async (t) => {
    const { chain, start, reads } = await createRig(t, source);
    const replicas = [await start(), await start()];
    await learn(chain, replicas);
    const before = reads();
    const spent = await spentBy(replicas);
    for (let count = 1; count <= 6; count++) {
      chain.mine(source === "accessList" ? [[ALICE, BigInt(count)]] : []);
      const turns = await Promise.all(replicas.map(({ turn }) => turn()));
      assert.deepEqual(turns, [ACCOUNTS.length, ACCOUNTS.length]);
      for (const { balance } of replicas) {
        const expected = source === "accessList" ? `0x${count.toString(16)}` : "0x1";
        assert.deepEqual(await balance(ALICE), { result: expected, isHit: true });
      }
    }
    assert.equal(reads() - before, 6);
    const shared = await Promise.all(replicas.map(({ outcome }) => outcome("shared")));
    assert.ok(shared.reduce((sum, each) => sum + each, 0) >= 6);
    assert.equal((await spentBy(replicas)) - spent, (6 * spent) / before);
  });
}

test("a call that two replicas got at different blocks is learned at the second request", async (t) => {
  const { chain, start, node } = await createRig(t, "accessList");
  const replicas = [await start(), await start()];
  const [one, other] = replicas;
  assert.ok(one && other);
  await learn(chain, replicas);
  const ask = async ({ service }: Replica) => {
    const { headers } = await rpc(service.url, "eth_call", [{ to: ALICE }, "latest"]);
    return headers.get("cache-status") === STATE_HIT;
  };
  const turn = async (balance: bigint): Promise<void> => {
    chain.mine([[BOB, balance]]);
    await Promise.all(replicas.map((replica) => replica.turn()));
  };
  const learned = () => metric(other.service.opsUrl, "forebay_state_answers_total", 'event="learned"');
  assert.equal(await ask(one), false);
  await turn(2n);
  assert.equal(await ask(other), false);
  await until(async () => (await learned()) === 1, "the call is learned");
  await turn(3n);
  const before = node.calls.get("eth_call");
  assert.equal(await ask(other), true);
  assert.equal(node.calls.get("eth_call"), before);
});

test("a block of another branch is not taken from a replica, and an orphan is undone", async (t) => {
  const { chain, start } = await createRig(t, "accessList");
  const replicas = [await start(), await start()];
  const [one, other] = replicas;
  assert.ok(one && other);
  await learn(chain, replicas);
  chain.mine([[BOB, 5n]]);
  assert.equal(await one.turn(), ACCOUNTS.length);
  assert.equal((await one.balance(BOB)).result, "0x5");
  chain.rewind(1);
  chain.mine([[ALICE, 3n]]);
  chain.mine();
  for (const replica of replicas) {
    await replica.turn();
    assert.equal((await replica.balance(BOB)).result, "0x1");
    assert.equal((await replica.balance(ALICE)).result, "0x3");
  }
});

test("a trace of a node that a replica does not have is not used", async (t) => {
  const { chain, start, startNode, node, reads } = await createRig(t, "trace");
  const second = await startNode();
  const replicas = [
    await start({ nodes: [{ url: node.url, name: "own", provider: "one" }] }),
    await start({ nodes: [{ url: second.url, name: "own", provider: "other" }] }),
  ];
  await learn(chain, replicas);
  const before = [reads(node), reads(second)];
  for (let count = 0; count < 4; count++) {
    chain.mine();
    const turns = await Promise.all(replicas.map(({ turn }) => turn()));
    assert.deepEqual(turns, [ACCOUNTS.length, ACCOUNTS.length]);
  }
  assert.deepEqual([reads(node), reads(second)], [(before[0] ?? 0) + 4, (before[1] ?? 0) + 4]);
});

test("a replica waits half a block time for one that ended, and reads itself", async (t) => {
  const { chain, redis, start, reads } = await createRig(t, "accessList");
  const replica = await start({ blockTimeMs: BLOCK_MS });
  await learn(chain, [replica]);
  const before = reads();
  const [key = ""] = await writeSetKeys(redis);
  chain.mine([[ALICE, 7n]]);
  const name = `${key.slice(0, key.lastIndexOf(":"))}:${chain.head.hash}`;
  await redis.admin.set(name, "lease:of-another");
  const startMs = performance.now();
  await replica.apply();
  const waitedMs = performance.now() - startMs;
  assert.ok(waitedMs > BLOCK_MS / 4, `${waitedMs} ms`);
  assert.equal(await replica.turn(), ACCOUNTS.length);
  assert.equal((await replica.balance(ALICE)).result, "0x7");
  assert.equal(reads(), before + 1);
  // The lease is of another replica.
  assert.equal(await redis.admin.get(name), "lease:of-another");
});

for (const [what, harm] of [
  ["lost", (redis: RedisServer) => redis.kill()],
  ["stopped", async (redis: RedisServer) => redis.signal("SIGSTOP")],
  ["flushed", (redis: RedisServer) => redis.admin.flushall()],
] as const) {
  test(`with a Redis that is ${what}, each replica follows for itself`, async (t) => {
    const { chain, redis, start, reads } = await createRig(t, "accessList");
    const replicas = [await start(), await start()];
    await learn(chain, replicas);
    await harm(redis);
    const before = reads();
    for (let count = 1; count <= 3; count++) {
      chain.mine([[BOB, BigInt(count)]]);
      const turns = await Promise.all(replicas.map(({ turn }) => turn()));
      assert.deepEqual(turns, [ACCOUNTS.length, ACCOUNTS.length]);
      assert.equal((await replicas[0]?.balance(BOB))?.result, `0x${count}`);
    }
    assert.equal(reads() - before, what === "flushed" ? 3 : 6);
    redis.signal("SIGCONT");
  });
}

test("a damaged write set in Redis is not used", async (t) => {
  const { chain, redis, start, reads } = await createRig(t, "accessList");
  const replica = await start({ blockTimeMs: BLOCK_MS });
  await learn(chain, [replica]);
  const [key = ""] = await writeSetKeys(redis);
  const value = Buffer.from((await redis.admin.get(key)) ?? "", "base64");
  value.writeUInt8((value.at(-1) ?? 0) ^ 1, value.length - 1);
  const before = reads();
  chain.mine([[ALICE, 9n]]);
  const name = `${key.slice(0, key.lastIndexOf(":"))}:${chain.head.hash}`;
  await redis.admin.set(name, value.toString("base64"));
  await replica.apply();
  assert.equal(await replica.turn(), ACCOUNTS.length);
  assert.equal((await replica.balance(ALICE)).result, "0x9");
  assert.equal(reads(), before + 1);
});
