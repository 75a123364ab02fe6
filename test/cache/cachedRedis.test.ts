import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cached } from "../../src/cache/cached.ts";
import { createKeyPrefix } from "../../src/cache/cacheEntry.ts";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { NegativeCache } from "../../src/cache/negativeCache.ts";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { TieredStore } from "../../src/cache/tieredStore.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../../src/core/rpcSource.ts";
import { type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { blockOf, createHeads, hashOf } from "../support/builders/heads.ts";
import { countingSource, createContext, createRequest, createResponse } from "../support/builders/request.ts";
import { createStated } from "../support/builders/statedValues.ts";
import { until } from "../support/clients/until.ts";
import { type RedisServer, startRedis } from "../support/servers/redis.ts";

const HEADS = createHeads({ latest: 1_000, finalized: 900 });
const DAYS = 86_400;

interface ReplicaOptions {
  readonly source: RpcSource;
  readonly memoryBytes?: number;
  readonly genesis?: Hash;
  /** The origin of its node. */
  readonly origin?: string;
}

/** Starts one replica, with its own memory and the shared Redis. */
const startReplica = async (t: TestContext, server: RedisServer, options: ReplicaOptions) => {
  const telemetry = createTelemetry({ level: "silent" });
  const redis = new RedisStore({ url: server.url, timeoutMs: 2_000, telemetry });
  t.after(() => redis.close());
  const probe = { body: Buffer.from("1"), isFinal: false, storedAtMs: 0 };
  await until(async () => {
    redis.set("probe", probe, 60);
    return (await redis.get("probe")) !== undefined;
  }, "Redis is used");
  const memory = new MemoryStore(options.memoryBytes ?? 1 << 20, telemetry);
  const prefix = createKeyPrefix("chain", 1, options.genesis ?? ZERO_HASH);
  const wrapped = {
    chain: "test",
    keys: { prefix },
    memory,
    stores: [redis],
    negativeCache: new NegativeCache(),
    stated: createStated({ nodes: [{ name: "node1", origin: options.origin ?? "one" }] }),
    telemetry,
  };
  return {
    source: cached(options.source, wrapped),
    store: new TieredStore({ keys: { prefix }, memory, stores: [redis] }),
    prefix,
  };
};

const atFinal = (number: number): RpcRequest =>
  createRequest({ retention: "final", block: { number: BigInt(number) }, method: "eth_getBlockReceipts" });

const recent = (number: number, fork = 0): RpcRequest =>
  createRequest({ retention: "recent", block: { number: BigInt(number), hash: hashOf(number, fork) } });

const textOf = ({ body }: RpcResponse): string =>
  body instanceof Uint8Array ? new TextDecoder().decode(body) : "stream";
const numbered = () =>
  countingSource(({ block, retention }) =>
    createResponse(JSON.stringify(`${retention}${block?.number}`), {
      verified: true,
      block: blockOf(block?.number ?? 950),
    }),
  );

const stored = (server: RedisServer, keys: number): Promise<void> =>
  until(async () => (await server.admin.dbsize()) >= keys + 1, `${keys} keys are in Redis`);

test("a new replica reads from Redis, then from memory", async (t) => {
  const server = await startRedis(t);
  const first = await startReplica(t, server, { source: numbered() });
  const requests = [
    createRequest({ retention: "byHash" }),
    createRequest({ retention: "byTransaction", params: [hashOf(7)] }),
    atFinal(800),
    recent(950),
  ];
  for (const request of requests) {
    await first.source.request(request, createContext({ heads: HEADS }));
  }
  await stored(server, requests.length);

  const node = numbered();
  const second = await startReplica(t, server, { source: node });
  for (const hit of ["redis", "memory"]) {
    for (const request of requests) {
      assert.deepEqual((await second.source.request(request, createContext({ heads: HEADS }))).status, { hit });
    }
  }
  assert.equal(node.requests, 0);
});

test("Redis stores final and byHash responses for seven days, others for an hour, and no state", async (t) => {
  const server = await startRedis(t);
  const { source } = await startReplica(t, server, { source: numbered() });
  const ask = (request: RpcRequest) => source.request(request, createContext({ heads: HEADS }));
  await ask(createRequest({ retention: "constant" }));
  await ask(createRequest({ retention: "head" }));
  await ask({ ...recent(950), retention: "recentState" });
  await ask(createRequest({ retention: "byHash" }));
  await ask(atFinal(800));
  await ask(recent(950));
  await ask(createRequest({ retention: "byTransaction", params: [hashOf(7)] }));
  await stored(server, 4);
  const keys = (await server.admin.keys("forebay*")).sort();
  const classes = keys.map((key) => key.split(/[:#]/)[3]);
  assert.deepEqual(classes, ["byHash", "byTransaction", "final", "recent"]);
  const days = await Promise.all(keys.map(async (key) => (await server.admin.ttl(key)) / DAYS));
  assert.deepEqual(
    days.map((value) => (value > 6 ? 7 : Math.ceil(value * 24) / 24)),
    [7, 1 / 24, 7, 1 / 24],
  );
});

test("replicas on different forks share one Redis, and never read a response of the other fork", async (t) => {
  const server = await startRedis(t);
  const forked = createHeads({ latest: 1_000, finalized: 900, fork: 1, forkedAt: 940 });
  const nodeOf = (fork: number) =>
    countingSource(({ retention }) =>
      createResponse(String(fork), retention === "recent" ? { verified: true } : { block: blockOf(950, fork) }),
    );
  const replicas = await Promise.all(
    [0, 1].map((fork) => startReplica(t, server, { source: nodeOf(fork), memoryBytes: 0 })),
  );
  const transaction = createRequest({ retention: "byTransaction", params: [hashOf(7)] });
  for (let round = 0; round < 20; round++) {
    for (const [fork, heads] of [HEADS, forked].entries()) {
      for (const request of [recent(950, fork), transaction]) {
        const answer = await replicas[fork]?.source.request(request, createContext({ heads }));
        assert.equal(answer && textOf(answer), String(fork));
      }
    }
  }
});

test("a restarted chain never reads the old chain's responses from Redis", async (t) => {
  const server = await startRedis(t);
  const first = await startReplica(t, server, { source: numbered() });
  await first.source.request(atFinal(1), createContext({ heads: HEADS }));
  await stored(server, 1);
  const node = numbered();
  const second = await startReplica(t, server, { source: node, genesis: `0x01${ZERO_HASH.slice(4)}` });
  await second.source.request(atFinal(1), createContext({ heads: HEADS }));
  assert.equal(node.requests, 1);
});

test("a value of an operator whose nodes a replica does not have is not read from Redis", async (t) => {
  const server = await startRedis(t);
  const balance = createRequest({ retention: "final", block: { number: 800n } });
  const stating = (text: string) => countingSource(() => createResponse(text, { block: blockOf(800) }));
  const ask = ({ source }: Awaited<ReturnType<typeof startReplica>>) =>
    Promise.resolve(source.request(balance, createContext({ heads: HEADS })));
  const lying = await startReplica(t, server, { source: stating('"0x7"'), origin: "liar" });
  assert.equal(textOf(await ask(lying)), '"0x7"');
  await stored(server, 1);
  const same = await startReplica(t, server, { source: stating('"0x2"'), origin: "liar" });
  assert.equal(textOf(await ask(same)), '"0x7"');
  const other = await startReplica(t, server, { source: stating('"0x1"') });
  assert.equal(textOf(await ask(other)), '"0x1"');
});

test("concurrent misses of one key read Redis once", async (t) => {
  const server = await startRedis(t);
  const { source } = await startReplica(t, server, { source: numbered(), memoryBytes: 0 });
  await server.admin.config("RESETSTAT");
  await Promise.all(Array.from({ length: 50 }, () => source.request(atFinal(1), createContext({ heads: HEADS }))));
  const stats = await server.admin.info("commandstats");
  const lookUps = /cmdstat_m?get:calls=(\d+)/.exec(stats)?.[1];
  assert.equal(lookUps, "1");
});

test("the segment store reads memory, then Redis, in the order of the keys", async (t) => {
  const server = await startRedis(t);
  const first = await startReplica(t, server, { source: numbered() });
  first.store.set("logs:a", Buffer.from("[1]"), "final", undefined);
  first.store.set("logs:b", Buffer.from("[2]"), "recent", blockOf(950));
  await stored(server, 2);
  const second = await startReplica(t, server, { source: numbered() });
  const read = async () =>
    (await second.store.get(["logs:a", "logs:none", "logs:b"])).map(
      (found) => found && [Buffer.from(found.bytes).toString(), found.from],
    );
  assert.deepEqual(await read(), [["[1]", "redis"], undefined, ["[2]", "redis"]]);
  assert.deepEqual(await read(), [["[1]", "memory"], undefined, ["[2]", "memory"]]);
});
