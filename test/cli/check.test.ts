import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { checkConfig } from "../../src/cli/check.ts";
import { formatCheckResult } from "../../src/cli/checkResult.ts";
import { configSchema } from "../../src/config/schema.ts";
import { wireMessage } from "../support/builders/flashblocks.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { startRedis } from "../support/servers/redis.ts";

const startNode = async (t: TestContext) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  return node;
};

const startFeed = async (t: TestContext) => {
  const feed = await createFakeFeed();
  t.after(() => feed.close());
  return feed;
};

/** Checks one chain. Returns the printed lines, with times and ports replaced. */
const check = async (
  chain: object,
  cache: object = {},
  server: object = {},
  access: object = {},
  log: object = {},
): Promise<readonly string[]> => {
  const chains = [{ name: "op", ...chain }];
  const results = await checkConfig(configSchema.parse({ chains, cache, server, access, log }));
  return results.map((result) =>
    formatCheckResult(result)
      .replaceAll(/\d+ ms/g, "N ms")
      .replaceAll(/127\.0\.0\.1:\d+/g, "HOST"),
  );
};

const CANNOT = "traces of blocks, block access lists, eth_createAccessList, proofs, witnesses";
const CAN = `ok    op/node1: can: state of all blocks, logs of 10,000 blocks, batches; cannot: ${CANNOT}, WebSocket`;
const COST = "warn  op: nodes answer most calls, and bill 30 to 60 times as many units";
const NO_RULES = `${COST}: the rules of the chain are not known: set chains[].forks, or upgrade forebay`;
const NO_SOURCE = "no node has block access lists or traces (debug_traceBlockByHash), and no feed has all transactions";
const STATE_READS = "eth_getBalance, eth_getTransactionCount, eth_getCode, eth_getStorageAt";
const EXECUTED = "eth_call, eth_estimateGas, eth_simulateV1, eth_createAccessList";

const ONE_ORIGIN = "ok    op heads: one origin, its word alone decides: HOST";

/** Nothing listens on port 9 (discard). */
const DEAD = "127.0.0.1:9";

test("all is well: nodes, WebSocket, feed and Redis", async (t) => {
  const [node, feed, redis] = await Promise.all([startNode(t), startFeed(t), startRedis(t)]);
  void feed.connected().then(() => feed.send(wireMessage(0)));
  const chain = {
    chainId: 31337,
    nodes: [{ url: node.url, wsUrl: node.wsUrl }],
    pending: { feeds: [feed.url] },
  };
  assert.deepEqual(await check(chain, { redis: redis.url }), [
    "ok    op/node1: chain 31337, head 10, N ms",
    "ok    op/node1 WebSocket: newHeads, N ms",
    `ok    op/node1: can: state of all blocks, logs of 10,000 blocks, batches, WebSocket; cannot: ${CANNOT}`,
    ONE_ORIGIN,
    "ok    op/feed1: first message after N ms",
    `ok    op: forwarded to nodes: always ${EXECUTED}`,
    NO_RULES,
    "ok    redis: HOST: PING answered, N ms",
  ]);
});

test("a chain without a chain id gets a warning that names it", async (t) => {
  const node = await startNode(t);
  assert.deepEqual(await check({ nodes: [{ url: node.url }] }), [
    "ok    op/node1: chain 31337, head 10, N ms",
    CAN,
    "warn  op: no chainId is configured, the first node that responds decides: set chainId: 31337",
    ONE_ORIGIN,
    `ok    op: forwarded to nodes: always ${STATE_READS}, ${EXECUTED}`,
    NO_RULES,
    `${COST}: ${NO_SOURCE}`,
  ]);
});

test("names of different origins that resolve to one address get a warning", async (t) => {
  const { url } = await startNode(t);
  const named = url.replace("127.0.0.1", "localhost");
  const linesOf = async (nodes: readonly { readonly url: string; readonly provider?: string }[]) =>
    (await check({ chainId: 31337, nodes: [...nodes] })).filter((line) => line.includes("resolve to one address"));
  assert.deepEqual(await linesOf([{ url }, { url: named }, { url: named }]), [
    "warn  op heads: 127.0.0.1 and localhost resolve to one address, and count as two origins: if one operator runs them, set the same nodes[].provider",
  ]);
  assert.deepEqual(
    await linesOf([
      { url, provider: "own" },
      { url: named, provider: "own" },
    ]),
    [],
  );
  assert.deepEqual(await linesOf([{ url }, { url, provider: "other" }]), []);
});

test("the nodes that get all raw transactions, and a warning if they are fewer than two", async (t) => {
  const { url } = await startNode(t);
  const writesOf = async (nodes: readonly { readonly url: string; readonly private?: boolean }[]) =>
    (await check({ chainId: 31337, writes: "all", nodes: [...nodes] })).filter((line) => line.includes(" op writes: "));
  assert.deepEqual(await writesOf([{ url }, { url }, { url, private: true }]), [
    "ok    op writes: raw transactions go to 2 nodes: node1, node2",
  ]);
  assert.deepEqual(await writesOf([{ url }, { url, private: true }]), [
    "warn  op writes: `writes: all` changes nothing: fewer than two nodes are not private",
  ]);
});

test("the budgets of keys, and where they are counted", async (t) => {
  const { url } = await startNode(t);
  const key = { name: "wallet", sha256: "0".repeat(64), limit: { unitsPerDay: 1_000 } };
  const budgets = async (cache: object, server: object) =>
    (
      await check({ chainId: 31337, nodes: [{ url }] }, cache, server, {
        keys: [key, { ...key, name: "free", limit: {} }],
      })
    ).filter((line) => line.includes(" key "));
  assert.deepEqual(await budgets({}, {}), [
    "ok    key wallet: 1000 units a day: each replica counts alone, and from 0 after a restart (cache.redis)",
  ]);
  const dataDir = join(tmpdir(), "forebay-check-budgets");
  assert.deepEqual(await budgets({}, { dataDir }), [
    "ok    key wallet: 1000 units a day: each replica counts alone, in its data folder (cache.redis)",
  ]);
  assert.deepEqual(await budgets({ redis: `redis://${DEAD}` }, {}), [
    "ok    key wallet: 1000 units a day: counted over all replicas, in Redis",
  ]);
});

test("the budgets of nodes, and a warning if a chain has no other node", async (t) => {
  const { url } = await startNode(t);
  const unitsOf = async (...nodes: readonly object[]) =>
    (await check({ chainId: 31337, nodes })).filter((line) => line.includes("/paid units: "));
  const paid = { name: "paid", url, unitsPerDay: 1_000_000 };
  assert.deepEqual(await unitsOf({ url }, paid), [
    "ok    op/paid units: 1000000 units a day: each replica counts alone, and from 0 after a restart (cache.redis)",
  ]);
  assert.deepEqual(await unitsOf(paid), [
    "warn  op/paid units: `unitsPerDay` limits nothing: the chain has no other node",
  ]);
});

test("a key that requires proven answers of a chain with one origin gets a warning", async (t) => {
  const { url } = await startNode(t);
  const key = { name: "treasury", sha256: "0".repeat(64), require: "proven" } as const;
  const warned = async (nodes: readonly object[], keys: readonly object[]) =>
    (await check({ chainId: 31337, nodes }, {}, {}, { keys })).filter((line) => line.includes(" op proofs: "));
  const warning =
    "warn  op proofs: one origin: no head is agreed, and every call of a key with `require: proven` fails (treasury)";
  assert.deepEqual(await warned([{ url }], [key]), [warning]);
  assert.deepEqual(await warned([{ url }], [{ ...key, chains: ["other"] }]), []);
  const two = [
    { url, provider: "a" },
    { url, provider: "b" },
  ];
  assert.deepEqual(await warned(two, [key]), []);
  assert.deepEqual(await warned([{ url }], []), []);
});

test("the keys of a chain whose latest is below the head", async (t) => {
  const { url } = await startNode(t);
  const key = (name: string, further: object) => ({ name, sha256: name.padEnd(64, "0"), ...further });
  const keys = [
    key("de", { confirmations: 6 }),
    key("ad", { confirmations: 2, chains: ["op"] }),
    key("be", { confirmations: 3, chains: ["other"] }),
    key("ef", {}),
  ];
  const described = async (some: readonly object[]) =>
    (await check({ chainId: 31337, nodes: [{ url }] }, {}, {}, { keys: some })).filter((line) =>
      line.includes(" op confirmations: "),
    );
  assert.deepEqual(await described(keys), [
    "ok    op confirmations: blocks between latest and the head: 6 for de, 2 for ad",
  ]);
  assert.deepEqual(await described(keys.slice(2)), []);
});

test("a node of another chain than configured", async (t) => {
  const node = await startNode(t);
  assert.deepEqual(await check({ chainId: 10, nodes: [{ url: node.url }] }), [
    "fault op/node1: its chain id is 31337, the configuration says 10",
    ONE_ORIGIN,
  ]);
});

test("a dead node, a dead WebSocket and a dead feed, each with its cause", async (t) => {
  const node = await startNode(t);
  const chain = {
    chainId: 31337,
    nodes: [
      { url: node.url, wsUrl: `ws://${DEAD}/k3y` },
      { url: `http://user:pass@${DEAD}/k3y` },
      { url: "http://node.invalid/k3y" },
    ],
    pending: { feeds: [`ws://${DEAD}/k3y`] },
  };
  const lines = await check(chain);
  const refused = "HOST: ECONNREFUSED (nothing listens on this host and port)";
  assert.deepEqual(
    lines.map((line) => line.replace("EAI_AGAIN", "ENOTFOUND")),
    [
      "ok    op/node1: chain 31337, head 10, N ms",
      `fault op/node1 WebSocket: ${refused}`,
      CAN,
      `fault op/node2: ${refused}`,
      "fault op/node3: node.invalid: ENOTFOUND (the host name does not resolve)",
      "ok    op heads: 2 of 3 origins must agree: HOST, HOST, node.invalid",
      `fault op/feed1: ${refused}`,
      `ok    op: forwarded to nodes: always ${EXECUTED}`,
      NO_RULES,
    ],
  );
  assert.ok(!/k3y|pass/.test(lines.join()), "no credentials");
});

test("TLS to a node without TLS", async (t) => {
  const node = await startNode(t);
  const [line] = await check({ chainId: 31337, nodes: [{ url: node.url.replace("http:", "https:") }] });
  assert.match(line ?? "", /^fault op\/node1: HOST: (?:ERR_SSL_\w+|EPROTO) \(the server does not speak TLS/);
});

test("a Redis that requires another password", async (t) => {
  const [node, { port }] = await Promise.all([startNode(t), startRedis(t, { password: "secret" })]);
  const lines = await check(
    { chainId: 31337, nodes: [{ url: node.url }] },
    { redis: `redis://:terces@127.0.0.1:${port}` },
  );
  assert.equal(
    lines.at(-1),
    "fault redis: HOST: WRONGPASS (the server rejects the user name or the password of the URL)",
  );
});

test("a node with limits: what it can do, and that a development node costs more", async (t) => {
  const chain = createFakeChain({ height: 3_000 });
  const kept = (tag: unknown): unknown => {
    if (Number(tag) < 2_000) {
      throw new FakeError(-32_000, "missing trie node");
    }
    return "0x1";
  };
  const node = await createFakeNode({
    chain,
    handlers: {
      eth_getBalance: ([, tag]) => kept(tag),
      eth_getLogs: ([filter]) => {
        const { fromBlock, toBlock } = Object(filter);
        if (Number(toBlock) - Number(fromBlock) >= 500) {
          throw new FakeError(-32_005, "query exceeds 500 blocks");
        }
        return [];
      },
      eth_getProof: () => ({ accountProof: [] }),
      debug_traceBlockByHash: () => [],
      web3_clientVersion: () => "anvil/v1.7.1",
    },
  });
  node.faults.refusesBatches = true;
  t.after(() => node.close());
  const lines = await check({ chainId: 31337, forks: "prague", nodes: [{ url: node.url }] });
  assert.deepEqual(lines.slice(1), [
    "ok    op/node1: can: traces of blocks, state of the newest 1,000 blocks, logs of 500 blocks, proofs; cannot: block access lists, batches, eth_createAccessList, witnesses, WebSocket",
    ONE_ORIGIN,
    `ok    op: forwarded to nodes: always ${STATE_READS}, eth_call, eth_estimateGas`,
    `${COST}: state of a development node is not followed, because it can change inside a block`,
  ]);
});

test("a node whose sender of an access list has no funds has access lists, and a node without the method has none", async (t) => {
  const cannotOf = async (code: number, message: string) => {
    const refuse = (): never => {
      throw new FakeError(code, message);
    };
    const node = await createFakeNode({ handlers: { eth_createAccessList: refuse } });
    t.after(() => node.close());
    const line = (await check({ chainId: 31337, nodes: [{ url: node.url }] })).find((each) => each.includes("can: "));
    return line?.split("cannot: ")[1] ?? "";
  };
  const poor = "failed to apply transaction: insufficient funds for gas * price + value: address 0x0000 have 0 want 1";
  assert.ok(!(await cannotOf(-32_000, poor)).includes("eth_createAccessList"));
  assert.ok((await cannotOf(-32_601, "the method does not exist")).includes("eth_createAccessList"));
});

test("a chain whose state is followed and executed forwards only what is not known", async (t) => {
  const node = await createFakeNode({ handlers: { debug_traceBlockByHash: () => [] } });
  t.after(() => node.close());
  const lines = await check({ chainId: 31337, forks: "prague", nodes: [{ url: node.url }] });
  assert.deepEqual(lines.slice(2), [ONE_ORIGIN, "ok    op: forwarded to nodes: only what is not known here"]);
});

test("the data folder: its limit, who can open it, and a folder that cannot be written", async (t) => {
  const node = await startNode(t);
  const parent = await mkdtemp(join(tmpdir(), "forebay-check-"));
  t.after(() => rm(parent, { recursive: true }));
  const chain = { chainId: 31337, nodes: [{ url: node.url }] };
  const cache = { diskBytes: 16 * 1024 * 1024 };
  const lineOf = async (dataDir: string, more: object = {}): Promise<string | undefined> => {
    const lines = await check(chain, { ...cache, ...more }, { dataDir });
    return lines.find((line) => line.includes("data folder"))?.replaceAll(parent, "PARENT");
  };
  assert.equal(await lineOf(join(parent, "data")), "ok    data folder: PARENT/data: up to 0.0 GiB");
  assert.deepEqual(await readdir(parent), []);
  assert.equal(await lineOf(parent, { disk: false }), "ok    data folder: PARENT: no entries are stored (cache.disk)");
  await mkdir(join(parent, "shared"), { mode: 0o755 });
  assert.equal(
    await lineOf(join(parent, "shared")),
    "warn  data folder: PARENT/shared: other users can open it; who writes to it can forge values",
  );
  await writeFile(join(parent, "file"), "");
  assert.equal(
    await lineOf(join(parent, "file", "data")),
    "fault data folder: PARENT/file/data: PARENT/file is not a folder",
  );
});

test("a share of calls in the log is named, and a level that leaves their lines out is a warning", async () => {
  const nodes = [{ url: `http://${DEAD}` }];
  const ofLog = async (log: object) =>
    (await check({ nodes }, {}, {}, {}, log)).filter((line) => line.includes("log of requests"));
  assert.deepEqual(await ofLog({}), []);
  assert.deepEqual(await ofLog({ requests: 0.07 }), ["ok    log of requests: a line for 7 % of the calls"]);
  assert.deepEqual(await ofLog({ requests: 1, level: "warn" }), [
    "warn  log of requests: `log.requests` has no effect: its lines are at info, and log.level is warn",
  ]);
});
