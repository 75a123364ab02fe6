import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";
import { StandInNode } from "../support/standIn/standInNode.ts";
import { WrittenChain } from "../support/standIn/writtenChain.ts";

/** Long, so that no read is late on a busy machine. The tests refresh the heads themselves. */
const LONG_MS = 20_000;
const STATE_HIT = "forebay; hit; detail=state";
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const [ALICE] = ACCOUNTS;
const NO_PROBATION = { blocks: 0, values: 0 };
const TRACE = "debug_traceBlockByHash";

/** Replicas in front of these nodes, which have traces. Each node is asked only if the one before it does not answer. */
const createRig = async (t: TestContext, names: readonly string[]) => {
  t.mock.method(Math, "random", () => 0.5);
  const written = new WrittenChain("prague");
  written.mine(ACCOUNTS.map((address) => [address, 1n]));
  const honest = await StandInNode.start({ chain: written.chain, traces: "geth" });
  t.after(() => honest.close());
  const redis = await startRedis(t);
  const nodes = new Map<string, LyingNode>();
  for (const name of names) {
    nodes.set(name, await startLyingNode(t, honest.url));
  }
  const nodeOf = (name: string): LyingNode => nodes.get(name) ?? assert.fail();
  const start = async (
    probation = NO_PROBATION,
    chosen: readonly { readonly name: string; readonly provider?: string }[] = names.map((name) => ({ name })),
  ) => {
    const chain: ServiceChain = {
      nodes: chosen.map((node, priority) => ({ ...node, priority, url: nodeOf(node.name).url })),
      ...{ blockTimeMs: LONG_MS, forks: "prague", state: { source: "trace", probation, waitMs: LONG_MS } },
    };
    const service = await createService(chain, { cache: { redis: redis.url, redisTimeoutMs: 1_000 } });
    t.after(() => service.close());
    await until(async () => (await metric(service.opsUrl, "forebay_redis_up")) === 1, "Redis is connected");
    const read = async (address: unknown, headers = {}) => {
      const response = await rpc(service.url, "eth_getBalance", [address, "latest"], headers);
      return { result: response.body.result, isHit: response.headers.get("cache-status") === STATE_HIT };
    };
    return {
      read,
      count: (name: string, label = "") => metric(service.opsUrl, `forebay_${name}`, ...(label === "" ? [] : [label])),
      /** Takes the newest head, and reads all balances. Returns the number of hits. */
      turn: async (): Promise<number> => {
        await followHead(service, written.chain);
        const balances = await Promise.all(ACCOUNTS.map((address) => read(address)));
        return balances.filter(({ isHit }) => isHit).length;
      },
    };
  };
  return { written, redis, nodeOf, start };
};

type Replica = Awaited<ReturnType<Awaited<ReturnType<typeof createRig>>["start"]>>;

/** Seals blocks until the replica knows all balances. Returns the number of blocks. */
const learn = async (written: WrittenChain, replica: Replica): Promise<number> => {
  for (let blocks = 1; ; blocks++) {
    written.mine();
    if ((await replica.turn()) === ACCOUNTS.length) {
      return blocks;
    }
    assert.ok(blocks < 40, "the balances become known");
  }
};

const traces = ({ calls }: LyingNode): number => calls.get(TRACE) ?? 0;

test("the probation of a node's traces ends on a new replica once it has ended on another", async (t) => {
  const { written, redis, start } = await createRig(t, ["a"]);
  const probation = { blocks: 6, values: 48 };
  const one = await start(probation);
  assert.ok((await learn(written, one)) > 6);
  await until(async () => (await redis.admin.keys("*:evidence*:trusted:*")).length === 1, "the evidence is stored");
  const other = await start(probation);
  assert.ok((await learn(written, other)) <= 4);
  assert.equal(await other.count("state_on_probation"), 0);
});

test("the probation of a node with the same name and another provider is not ended", async (t) => {
  const { written, redis, start } = await createRig(t, ["a"]);
  const probation = { blocks: 6, values: 48 };
  const one = await start(probation, [{ name: "a", provider: "one" }]);
  await learn(written, one);
  await until(async () => (await redis.admin.keys("*:evidence*:trusted:*")).length === 1, "the evidence is stored");
  const other = await start(probation, [{ name: "a", provider: "other" }]);
  assert.ok((await learn(written, other)) > 6);
});

test("a node that lied to one replica is suspended on the others that have it, and its values end there", async (t) => {
  const { written, nodeOf, start } = await createRig(t, ["a", "liar", "b"]);
  const [one, other] = [await start(), await start()];
  await learn(written, one);
  await learn(written, other);
  // The read of one replica goes to the liar.
  let refused = 1;
  nodeOf("a").lies = [
    {
      ...{ name: "busy", methods: ["eth_getBalance"] },
      response: ({ id, ...response }) =>
        refused-- > 0
          ? { id, jsonrpc: "2.0", error: { code: -32_000, message: "request timed out" } }
          : { id, ...response },
    },
  ];
  nodeOf("liar").lies = [{ name: "lie", methods: ["eth_getBalance"], result: () => "0x7" }];
  assert.equal((await one.read(ALICE, { "cache-control": "no-cache" })).result, "0x7");
  await until(async () => (await one.count("upstream_suspended{", 'node="liar"')) === 1, "the lie is found");
  await until(async () => (await other.count("upstream_suspended{", 'node="liar"')) === 1, "the other one knows it");
  assert.deepEqual(
    [await other.count("upstream_suspended{", 'node="a"'), await other.count("upstream_suspended{", 'node="b"')],
    [0, 0],
  );
  // The traces of the liar rest too.
  const before = traces(nodeOf("liar"));
  const refuse = { name: "no traces", methods: [TRACE], response: ({ id }: { readonly id?: unknown }) => refusal(id) };
  nodeOf("a").lies = [refuse];
  nodeOf("b").lies = [refuse];
  written.mine();
  await other.turn();
  assert.equal(traces(nodeOf("liar")), before);
  // A replica that starts later knows it too.
  const later = await start();
  written.mine();
  await later.turn();
  written.mine();
  await later.turn();
  assert.equal(traces(nodeOf("liar")), before);
});

const refusal = (id: unknown) => ({
  id,
  jsonrpc: "2.0",
  error: { code: -32_601, message: "the method does not exist" },
});

test("traces that miss a write rest on all replicas, and their values end", async (t) => {
  const { written, redis, nodeOf, start } = await createRig(t, ["a", "b", "c"]);
  const [one, other] = [await start(), await start()];
  await learn(written, one);
  await learn(written, other);
  // No trace has this write.
  written.mine([[addressOf(0), 2n]]);
  await one.turn();
  await other.turn();
  assert.equal((await one.read(ALICE, { "cache-control": "no-cache" })).result, "0x2");
  await until(
    async () => (await one.count("state_drops_total", 'reason="difference"')) === 1,
    "the values are dropped",
  );
  await until(async () => (await other.count("state_drops_total", 'reason="difference"')) === 1, "also elsewhere");
  assert.equal((await other.read(ALICE)).result, "0x2");
  const before = traces(nodeOf("a"));
  await redis.admin.flushall();
  await learn(written, other);
  assert.equal(traces(nodeOf("a")), before);
  assert.equal(await other.count("upstream_suspended{"), 0);
  await until(async () => (await redis.admin.keys("*:evidence*:suspended:*")).length === 1, "it is stored again");
});
