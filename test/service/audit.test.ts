import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Status } from "../../src/admin/status.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { startWorldNode, type WorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const STATE_HIT = "forebay; hit; detail=state";
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const [ALICE, BOB] = [addressOf(0), addressOf(1)];
const TRACE = "debug_traceBlockByHash";

interface ReadCase {
  readonly method: string;
  /** The parameters before the block. */
  readonly params: readonly unknown[];
  readonly truth: string;
  readonly lie: string;
}

const BALANCE: ReadCase = { method: "eth_getBalance", params: [ALICE], truth: "0x1", lie: "0x7" };
const READS: readonly ReadCase[] = [
  BALANCE,
  { method: "eth_getTransactionCount", params: [ALICE], truth: "0x0", lie: "0x7" },
  { method: "eth_getCode", params: [ALICE], truth: "0x", lie: "0x6001" },
  { method: "eth_getStorageAt", params: [ALICE, "0x1"], truth: `0x${"0".repeat(64)}`, lie: `0x${"7".repeat(64)}` },
];

const isOf = (address: unknown, wanted: string): boolean => String(address).toLowerCase() === wanted.toLowerCase();

/** Answers this read of an account with another value. */
const lieAbout = ({ method, params: [account], lie }: ReadCase): Lie => ({
  name: `a wrong ${method}`,
  methods: [method],
  result: (result, { params }) => (isOf(params[0], String(account)) ? lie : result),
});

/** Refuses calls of a method: another node is asked. With `times`, only the first ones. */
const refuse = (method: string, { account = "", times = Number.POSITIVE_INFINITY } = {}): Lie => {
  let left = times;
  return {
    name: `refuses ${method}`,
    methods: [method],
    response: ({ id, ...response }, { params }) =>
      (account === "" || isOf(params[0], account)) && left-- > 0
        ? { id, jsonrpc: "2.0", error: { code: -32_000, message: "request timed out" } }
        : { ...response, id },
  };
};

/** A node that has no traces. */
const NO_TRACES: Lie = {
  name: "has no traces",
  methods: [TRACE],
  response: ({ id }) => ({
    id,
    jsonrpc: "2.0",
    error: { code: -32_601, message: `the method ${TRACE} does not exist` },
  }),
};

interface NodeConfig {
  readonly name: string;
  readonly provider?: string;
  readonly lies?: readonly Lie[];
}

/** A service in front of these nodes. Each is asked only if the one before it does not answer. */
const startRig = async (t: TestContext, configs: readonly NodeConfig[]) => {
  const chain = new StandInChain("prague");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const startNode = (lies: readonly Lie[] = []) => startWorldNode(t, chain, { traces: "geth", lies });
  const nodes = new Map<string, WorldNode>();
  for (const { name, lies } of configs) {
    nodes.set(name, await startNode(lies));
  }
  const service = await createService({
    nodes: configs.map(({ name, provider }, priority) => ({
      ...{ name, priority, url: nodes.get(name)?.url ?? "" },
      ...(provider && { provider }),
    })),
    blockTimeMs: LONG_MS,
    forks: "prague",
    state: { source: "trace", waitMs: LONG_MS },
  });
  t.after(() => service.close());
  const node = (name: string): WorldNode => {
    const found = nodes.get(name);
    assert.ok(found);
    return found;
  };
  const read = async ({ method, params }: Pick<ReadCase, "method" | "params">, headers = {}) => {
    const response = await rpc(service.url, method, [...params, "latest"], headers);
    return { result: response.body.result, isHit: response.headers.get("cache-status") === STATE_HIT };
  };
  const ask = (read_: ReadCase) => read(read_, { "cache-control": "no-cache" });
  /** Seals a block, and reads all balances. Returns the number of hits. */
  const turn = async (balances: Parameters<StandInChain["mine"]>[0] = []): Promise<number> => {
    chain.mine(balances);
    await followHead(service, chain);
    let hits = 0;
    for (const account of ACCOUNTS) {
      hits += (await read({ method: "eth_getBalance", params: [account] })).isHit ? 1 : 0;
    }
    return hits;
  };
  /** Reads in several blocks, until all balances are known. */
  const learn = async (): Promise<void> => {
    for (let count = 0; (await turn()) < ACCOUNTS.length; count++) {
      assert.ok(count < 200, "the balances become known");
    }
  };
  const count = (name: string, ...labels: readonly string[]) => metric(service.opsUrl, `forebay_${name}`, ...labels);
  const wrong = (name: string) => count("verify_failures_total", 'check="state"', `node="${name}"`);
  const suspended = (name: string) => count("upstream_suspended{", `node="${name}"`);
  const drops = () => count("state_drops_total", 'reason="difference"');
  return { ...{ startNode, service, node, read, ask, turn, learn, count, wrong, suspended, drops } };
};

/** Returns the nodes that the status page shows as suspended. */
const shownSuspended = async ({ url }: Service): Promise<readonly string[]> => {
  const status = (await (await fetch(`${url}/status.json`)).json()) as Status;
  return status.chains.flatMap(({ nodes }) => nodes.filter(({ breakerOpen }) => breakerOpen).map(({ name }) => name));
};

const tracesOf = ({ calls }: WorldNode): number => calls.get(TRACE) ?? 0;

for (const each of READS) {
  test(`of three origins, a node that lies about ${each.method} is suspended, and nothing is dropped`, async (t) => {
    const rig = await startRig(t, [{ name: "a" }, { name: "liar" }, { name: "b" }]);
    const { service, node, read, ask, turn, learn, wrong, suspended } = rig;
    await learn();
    await read(each);
    assert.deepEqual(await read(each), { result: each.truth, isHit: true });
    // The read goes to the liar.
    node("a").fault = { lies: [refuse(each.method, { times: 1 })] };
    node("liar").fault = { lies: [lieAbout(each)] };
    assert.equal((await ask(each)).result, each.lie);
    await until(async () => (await wrong("liar")) === 1, "the lie is found");
    assert.deepEqual([await suspended("liar"), await suspended("a"), await suspended("b")], [1, 0, 0]);
    assert.deepEqual(await shownSuspended(service), ["liar"]);
    const before = tracesOf(node("a"));
    assert.equal(await turn(), ACCOUNTS.length, "the known value was right");
    assert.equal((await read(each)).result, each.truth);
    assert.ok(tracesOf(node("a")) > before, "the traces of the honest node go on");
    assert.deepEqual([await rig.drops(), await rig.count("state_differences_total")], [0, 0]);
    assert.equal(await rig.count("state_disagreements_total"), 0);
  });
}

test("of three origins, a known value that one of them gave wrongly ends with all others, and traces go on", async (t) => {
  const bob = { ...BALANCE, params: [BOB] };
  const rig = await startRig(t, [{ name: "liar", lies: [NO_TRACES, lieAbout(bob)] }, { name: "a" }, { name: "b" }]);
  const { node, ask, turn, wrong, suspended } = rig;
  node("liar").fault = { lies: [NO_TRACES, lieAbout(bob)] };
  // Checks come each two seconds.
  for (let count = 0; (await wrong("liar")) === 0; count++) {
    assert.ok(count < 5_000, "the lie is found");
    await turn();
    await ask(bob);
  }
  assert.equal(await suspended("liar"), 1);
  node("liar").fault = { lies: [NO_TRACES] };
  const before = tracesOf(node("a"));
  await rig.learn();
  assert.ok(tracesOf(node("a")) > before);
});

const liarsOfOneOrigin = [
  { name: "liar1", provider: "liars" },
  { name: "liar2", provider: "liars" },
];

for (const [title, liars] of [
  ["with two origins", [{ name: "liar1" }]],
  ["with a liar of two nodes and one other origin", liarsOfOneOrigin],
] as const) {
  test(`${title}, all ends if they differ, and the source node's traces stay if its own read has the value`, async (t) => {
    const rig = await startRig(t, [{ name: "a" }, ...liars]);
    const { node, ask, learn } = rig;
    await learn();
    node("a").fault = { lies: [refuse("eth_getBalance", { times: 1 })] };
    for (const { name } of liars) {
      node(name).fault = { lies: [lieAbout(BALANCE)] };
    }
    assert.equal((await ask(BALANCE)).result, BALANCE.lie);
    await until(async () => (await rig.drops()) === 1, "the values are dropped");
    assert.deepEqual(
      [await rig.count("state_differences_total"), await rig.count("state_disagreements_total")],
      [1, 1],
    );
    assert.equal(await rig.count("verify_failures_total", 'check="state"'), 0);
    assert.equal(await rig.count("upstream_suspended{"), 0);
    const before = tracesOf(node("a"));
    await learn();
    assert.ok(tracesOf(node("a")) > before);
  });
}

test("a liar that is one origin with two nodes is outvoted by two others", async (t) => {
  const rig = await startRig(t, [{ name: "a" }, ...liarsOfOneOrigin, { name: "b" }]);
  await rig.learn();
  rig.node("a").fault = { lies: [refuse("eth_getBalance", { times: 1 })] };
  rig.node("liar1").fault = { lies: [lieAbout(BALANCE)] };
  rig.node("liar2").fault = { lies: [lieAbout(BALANCE)] };
  assert.equal((await rig.ask(BALANCE)).result, BALANCE.lie);
  await until(async () => (await rig.wrong("liar1")) === 1, "the lie is found");
  assert.deepEqual([await rig.suspended("liar1"), await rig.suspended("a"), await rig.suspended("b")], [1, 0, 0]);
  assert.equal(await rig.drops(), 0);
});

for (const names of [["a"], ["a", "b"], ["a", "b", "c"]]) {
  test(`a write that a node's traces miss is found by a check, and suspends them: ${names.length} origins`, async (t) => {
    const rig = await startRig(
      t,
      names.map((name) => ({ name })),
    );
    const { node, read, turn, learn, drops } = rig;
    await learn();
    const others = names.slice(1);
    // No trace has this write.
    await turn([[ALICE, 2n]]);
    for (let count = 0; (await drops()) === 0; count++) {
      assert.ok(count < 5_000, "the missing write is found");
      await read(BALANCE);
    }
    assert.equal((await read(BALANCE)).result, "0x2");
    assert.equal(await rig.count("state_differences_total", 'kind="check"'), 1);
    assert.equal(await rig.count("upstream_suspended{"), 0);
    const before = tracesOf(node("a"));
    await turn();
    await turn();
    assert.equal(tracesOf(node("a")), before);
    assert.equal((await turn()) > 0, others.length > 0, "another node's traces keep the values");
  });
}

test("a node whose traces take over passes a check first, and no value ends", async (t) => {
  const rig = await startRig(t, [{ name: "a" }, { name: "b" }]);
  await rig.learn();
  rig.node("a").fault = { lies: [NO_TRACES] };
  for (let count = 0; (await rig.turn()) < ACCOUNTS.length; count++) {
    assert.ok(count < 3, "the check passes");
  }
  assert.ok(tracesOf(rig.node("b")) >= 1);
  assert.equal(await rig.count("state_unchecked"), 0);
  assert.equal(await rig.count("state_drops_total"), 0);
});

test("a trace that misses a write of its first block answers nothing", async (t) => {
  const rig = await startRig(t, [{ name: "a" }, { name: "b" }]);
  let block = 2n;
  while (tracesOf(rig.node("a")) === 0) {
    await rig.turn(ACCOUNTS.map((account) => [account, block++]));
  }
  await until(async () => (await rig.drops()) === 1, "the first check finds it");
});

test("of three origins, the source node that lies in a read is suspended, and known values answer on", async (t) => {
  const rig = await startRig(t, [{ name: "liar" }, { name: "a" }, { name: "b" }]);
  await rig.learn();
  rig.node("liar").fault = { lies: [lieAbout(BALANCE)] };
  assert.equal((await rig.ask(BALANCE)).result, BALANCE.lie);
  await until(async () => (await rig.wrong("liar")) === 1, "the lie is found");
  for (let count = 0; (await rig.turn()) < ACCOUNTS.length; count++) {
    assert.ok(count < 3, "the check passes");
  }
  assert.deepEqual([await rig.drops(), await rig.count("state_unchecked")], [0, 0]);
});

test("a node whose traces take over is not suspended for a write that those of the node before it miss", async (t) => {
  const rig = await startRig(t, [{ name: "a" }, { name: "b" }]);
  const { node, turn, learn, drops } = rig;
  await learn();
  await turn([[ALICE, 2n]]);
  node("a").fault = { lies: [NO_TRACES] };
  for (let count = 0; (await drops()) === 0; count++) {
    assert.ok(count < 20, "the missing write is found");
    await turn();
  }
  const before = tracesOf(node("b"));
  for (let count = 0; count < 20; count++) {
    await turn();
  }
  assert.ok(tracesOf(node("b")) > before);
});

test("after a reload that adds a node to one whose traces are suspended, the new node's traces are used", async (t) => {
  const rig = await startRig(t, [{ name: "a" }]);
  const { startNode, service, node, turn, learn, read, drops } = rig;
  await learn();
  await turn([[ALICE, 2n]]);
  for (let count = 0; (await drops()) === 0; count++) {
    assert.ok(count < 5_000, "the missing write is found");
    await read(BALANCE);
  }
  const added = await startNode();
  const nodes = [
    { name: "a", url: node("a").url },
    { name: "b", url: added.url },
  ];
  await service.reload({}, { nodes });
  for (let count = 0; tracesOf(added) === 0; count++) {
    assert.ok(count < 20, "the traces of the new node are used");
    await turn();
  }
});
