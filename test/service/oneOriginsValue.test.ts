import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";
import { createService, type Service } from "../support/servers/service.ts";

const HEIGHT = 100;
const FINAL = "0x10";
const RIGHT = "0x64";
const FORGED = "0xbad";
const ABSENT = "none";
const BYPASS = "x-fresh";
const RECEIPT = "eth_getTransactionReceipt";
const EMPTY_RECEIPT = {
  ...{ type: "0x0", status: "0x1", transactionIndex: "0x0", gasUsed: "0x5208", cumulativeGasUsed: "0x5208" },
  ...{ logs: [], logsBloom: `0x${"00".repeat(256)}` },
};
const MINUTES = 60_000;
const LIFE_MS = 10 * MINUTES;
const DAY_MS = 24 * 60 * MINUTES;

const accountOf = (index: number): string => `0x${(index + 1).toString(16).padStart(40, "0")}`;

interface Stage {
  readonly replicas: readonly [Service, Service];
  readonly nodes: readonly FakeNode[];
  /** The nodes in the order in which they were asked for values. */
  readonly asked: readonly FakeNode[];
  /** The balance that each node states, in that order. */
  readonly balances: string[];
  /** Statements about the method, in that order. */
  counts(method?: string): readonly number[];
  nameOf(node: FakeNode | undefined): string;
  /** Before it, only the node that was asked first states values. */
  openAll(): void;
  /** Advances the clock of the replicas, not that of Redis. */
  tick(ms: number): void;
}

/** Starts two replicas with one Redis. The node that is asked first states `states[0]`, and so on. */
const start = async (
  t: TestContext,
  { states, providers = [] }: { readonly states: readonly string[]; readonly providers?: readonly string[] },
): Promise<Stage> => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const chain = createFakeChain({ height: HEIGHT });
  const { hash = "" } = chain.blocks[Number(FINAL)] ?? {};
  const balances = [...states];
  const asked: FakeNode[] = [];
  const statements = new Map<string, number>();
  let areAllOpen = false;
  const createNode = async (): Promise<FakeNode> => {
    const state = (method: string): string => {
      if (!asked.includes(node)) {
        if (asked.length > 0 && !areAllOpen) {
          throw new FakeError(-32_000, "pending block is not available");
        }
        asked.push(node);
      }
      const position = asked.indexOf(node);
      statements.set(method + position, (statements.get(method + position) ?? 0) + 1);
      return balances[position] ?? "";
    };
    const node = await createFakeNode({
      chain,
      handlers: {
        eth_getBalance: () => state("eth_getBalance"),
        debug_traceBlockByNumber: () => [{ txHash: state("debug_traceBlockByNumber") }],
        eth_call: () => state("eth_call").padEnd(66, "0"),
        eth_getTransactionReceipt: ([transactionHash]) =>
          state(RECEIPT) === ABSENT ? null : { ...EMPTY_RECEIPT, transactionHash, blockHash: hash, blockNumber: FINAL },
      },
    });
    return node;
  };
  const nodes = await Promise.all(states.map(createNode));
  const nameOf = (node: FakeNode | undefined): string => `node${node === undefined ? 0 : nodes.indexOf(node) + 1}`;
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const redis = await startRedis(t);
  const startReplica = async (): Promise<Service> => {
    const service = await createService(
      {
        nodes: nodes.map((node, index) => ({ url: node.url, name: nameOf(node), provider: providers[index] })),
        pending: { mode: "node" },
        state: { follow: false },
        upstream: { hedge: { maxShare: 0 } },
      },
      { cache: { redis: redis.url, redisTimeoutMs: 5_000, bypassHeader: BYPASS } },
    );
    t.after(() => service.close());
    const upstreams = service.chains[0]?.upstreams;
    const isSettled = () =>
      upstreams?.heads.current()?.finalized !== undefined && upstreams.nodes.every(({ head }) => head !== undefined);
    await until(isSettled, "all heads are known");
    await untilRedisIsUsed(service);
    return service;
  };
  return {
    replicas: [await startReplica(), await startReplica()],
    nodes,
    asked,
    balances,
    nameOf,
    counts: (method = "eth_getBalance") => states.map((_, position) => statements.get(method + position) ?? 0),
    openAll: () => {
      areAllOpen = true;
    },
    tick: (ms) => t.mock.timers.tick(ms),
  };
};

const ask = async ({ url }: Service, method: string, ...params: readonly unknown[]): Promise<unknown> => {
  const { body, text } = await rpc(url, method, params);
  assert.equal(body.error, undefined, text);
  return body.result;
};
const balanceOn = (service: Service, index = 0): Promise<unknown> =>
  ask(service, "eth_getBalance", accountOf(index), FINAL);

/** Waits until the value that the replica has stored is in Redis: writes are in the background. */
const isShared = async (from: Service): Promise<void> =>
  until(
    async () => (await metric(from.opsUrl, "forebay_redis_seconds_count", 'operation="set"')) > 0,
    "it is in Redis",
  );

const disagreements = ({ opsUrl }: Service): Promise<number> => metric(opsUrl, "forebay_state_disagreements_total");

test("a value of one origin is asked of another after ten minutes, and then cached for days", async (t) => {
  const { replicas, counts, openAll, tick } = await start(t, { states: [RIGHT, RIGHT] });
  const [one, other] = replicas;
  assert.equal(await balanceOn(one), RIGHT);
  await isShared(one);
  assert.equal(await balanceOn(other), RIGHT);
  tick(LIFE_MS - 1);
  assert.equal(await balanceOn(one), RIGHT);
  assert.deepEqual(counts(), [1, 0], "the value is served for ten minutes");
  openAll();
  tick(1);
  assert.equal(await balanceOn(one), RIGHT);
  assert.deepEqual(counts(), [1, 1], "the other origin is asked");
  await until(async () => (await balanceOn(other)) === RIGHT, "the other replica answers");
  tick(6 * DAY_MS);
  assert.equal(await balanceOn(one), RIGHT);
  assert.equal(await balanceOn(other), RIGHT);
  assert.deepEqual(counts(), [1, 1], "no node is asked again, also for the other replica");
});

test("a read that bypasses the cache does not replace a value that two origins have stated", async (t) => {
  const { replicas, balances, openAll, tick } = await start(t, { states: [RIGHT, RIGHT] });
  const [one] = replicas;
  await balanceOn(one);
  openAll();
  tick(LIFE_MS);
  assert.equal(await balanceOn(one), RIGHT);
  balances.fill(FORGED);
  const { body } = await rpc(one.url, "eth_getBalance", [accountOf(0), FINAL], { [BYPASS]: "1" });
  assert.equal(body.result, FORGED);
  assert.equal(await balanceOn(one), RIGHT);
});

test("two origins that differ: the value of the node configured first is served, and lives for ten minutes", async (t) => {
  const { replicas, asked, balances, nameOf, counts, openAll, tick } = await start(t, { states: [FORGED, RIGHT] });
  const [one] = replicas;
  await balanceOn(one);
  openAll();
  tick(LIFE_MS);
  const first = (await balanceOn(one)) as string;
  const preferred = asked.findIndex((node) => nameOf(node) === "node1");
  assert.equal(first, preferred === 0 ? FORGED : RIGHT);
  assert.equal(await disagreements(one), 1);
  const before = counts();
  assert.equal(await balanceOn(one), first);
  assert.deepEqual(counts(), before, "it lives for ten minutes");
  balances[preferred] = balances[1 - preferred] ?? "";
  tick(LIFE_MS);
  assert.equal(await balanceOn(one), balances[preferred], "it has changed its word");
});

test("the majority of three origins is served and cached, on both replicas", async (t) => {
  const { replicas, counts, openAll, tick } = await start(t, { states: [FORGED, RIGHT, RIGHT] });
  const [one, other] = replicas;
  for (const index of [0, 1]) {
    assert.equal(await balanceOn(one, index), FORGED);
    assert.equal(await balanceOn(other, index), FORGED);
  }
  openAll();
  tick(LIFE_MS);
  const asOf = counts();
  assert.equal(await balanceOn(one, 0), RIGHT);
  assert.deepEqual(
    counts().map((count, at) => count - (asOf[at] ?? 0)),
    [0, 1, 1],
    "two other origins are asked",
  );
  const isRight = async () => (await balanceOn(other, 1)) === RIGHT;
  await until(isRight, "the other forged value ends on the other replica, after the same time");
  const before = counts();
  tick(6 * DAY_MS);
  assert.equal(await balanceOn(one, 0), RIGHT);
  assert.deepEqual(counts(), before, "it is kept");
});

test("with nodes of one origin, a value is cached for days", async (t) => {
  const { replicas, counts, tick } = await start(t, { states: [RIGHT, RIGHT], providers: ["same", "same"] });
  const [one] = replicas;
  await balanceOn(one);
  tick(6 * DAY_MS);
  await balanceOn(one);
  assert.deepEqual(counts(), [1, 0]);
});

test("results in which nodes of different software differ live for ten minutes each", async (t) => {
  const { replicas, counts, openAll, tick } = await start(t, { states: ["0x1", "0x2"] });
  const [one] = replicas;
  const trace = () => ask(one, "debug_traceBlockByNumber", FINAL);
  assert.deepEqual(await trace(), [{ txHash: "0x1" }]);
  openAll();
  tick(LIFE_MS);
  assert.deepEqual(await trace(), [{ txHash: "0x2" }]);
  assert.deepEqual(await trace(), [{ txHash: "0x2" }]);
  assert.deepEqual(counts("debug_traceBlockByNumber"), [1, 1]);
});

test("the origin of a value answers if no other one can", async (t) => {
  const { replicas, asked, nodes, counts, tick } = await start(t, { states: [RIGHT, RIGHT] });
  const [one] = replicas;
  await balanceOn(one);
  const other = nodes.find((node) => node !== asked[0]);
  assert.ok(other);
  other.faults.answer = 503;
  tick(LIFE_MS);
  assert.equal(await balanceOn(one), RIGHT);
  const before = counts();
  assert.equal(await balanceOn(one), RIGHT);
  assert.deepEqual(counts(), before, "it lives for ten more minutes");
});

test("a receipt that another origin lacks is kept, because its node may have pruned it", async (t) => {
  const { replicas, nodes, counts, openAll, tick } = await start(t, { states: [RIGHT, ABSENT] });
  const [one] = replicas;
  const [preferred] = nodes;
  assert.ok(preferred);
  const receipt = () => ask(one, RECEIPT, `0x${"ab".repeat(32)}`);
  Object.assign(preferred.faults, { error: { code: -32_000, message: "not available" }, methods: [RECEIPT] });
  const first = await receipt();
  assert.notEqual(first, null);
  preferred.faults.error = undefined;
  openAll();
  tick(LIFE_MS);
  assert.deepEqual(await receipt(), first);
  assert.deepEqual(counts(RECEIPT), [1, 1]);
});
