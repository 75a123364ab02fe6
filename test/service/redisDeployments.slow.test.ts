import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type Asked, askAll, isHit } from "../support/clients/askAll.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { startCluster, startRedis, startSentinels, untilRedisIsUsed } from "../support/servers/redis.ts";
import { type ChainCall, createSealedChain, type SealedChain, sharedCallsOf } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

const REQUESTS = 300;
/** The tests show sharing, not speed: two busy cores may need more than the default of 50 ms. */
const REDIS_TIMEOUT_MS = 1_000;

let chain: SealedChain;
let calls: readonly ChainCall[];
/** The results of the node itself, in the order of `calls`. */
let truth: readonly (string | undefined)[];

before(async () => {
  chain = await createSealedChain();
  calls = sharedCallsOf(chain, REQUESTS);
  truth = (await askAll(chain.devnet.anvilUrl, calls)).map(({ result }) => result);
});
after(() => chain?.devnet.close());

const open = async (t: TestContext, redis: string, memoryBytes?: number): Promise<Service> => {
  const service = await createService(
    { nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } },
    { cache: { redis, redisTimeoutMs: REDIS_TIMEOUT_MS, ...(memoryBytes !== undefined && { memoryBytes }) } },
  );
  t.after(() => service.close());
  await Promise.all([settled(service), untilRedisIsUsed(service)]);
  return service;
};

/** Sends every call once. Each result must equal the node's. */
const round = async (service: Service): Promise<readonly Asked[]> => {
  const answers = await askAll(service.url, calls);
  for (const [index, { result, text, call }] of answers.entries()) {
    assert.equal(result, truth[index], `${JSON.stringify(call)}: ${text}`);
  }
  return answers;
};

const allHit = (service: Service, layer: string, what: string): Promise<void> =>
  until(async () => (await round(service)).every((answer) => isHit(answer, layer)), what);

/** One replica fills Redis, and answers the second round from memory. Another replica reads everything from Redis. */
const proveShared = async (t: TestContext, redis: string): Promise<void> => {
  const first = await open(t, redis);
  await round(first);
  assert.ok((await round(first)).every((answer) => isHit(answer, "memory")));
  const second = await open(t, redis);
  const misses = (await round(second)).filter((answer) => !isHit(answer, "redis"));
  assert.deepEqual(misses, []);
  assert.ok((await round(second)).every((answer) => isHit(answer, "memory")));
};

test("one server, over TLS with a password: shared, and served to a new replica at once", async (t) => {
  const { url, ca } = await startRedis(t, { tls: true, password: "p@ss:word/" });
  assert.ok(ca);
  setDefaultCACertificates([...getCACertificates("default"), ca]);
  await proveShared(t, url);
});

test("Sentinel: entries are shared; the master is killed under load, no request fails, and the new one serves hits", async (t) => {
  const { url, master, replica } = await startSentinels(t);
  await proveShared(t, url);
  const service = await open(t, url, 0);
  await allHit(service, "redis", "the first master answers");
  await master.kill();
  await until(async () => {
    await round(service);
    return (await replica.admin.info("replication")).includes("role:master");
  }, "the replica is promoted");
  await allHit(service, "redis", "the new master answers");
});

test("Cluster: entries are shared; a master is killed under load, no request fails, and hits of all slots resume", async (t) => {
  const { url, masters, replica } = await startCluster(t);
  await proveShared(t, url);
  const service = await open(t, url, 0);
  await allHit(service, "redis", "the cluster answers");
  await masters[0]?.kill();
  await until(async () => {
    await round(service);
    return (await replica.admin.info("replication")).includes("role:master");
  }, "the replica is promoted");
  await allHit(service, "redis", "all slots answer again");
});
