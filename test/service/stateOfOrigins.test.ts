import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";
import { startWorldNode, type WorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const [ALICE, CONTRACT] = [addressOf(0), addressOf(9)];
/** Returns the balance of ALICE. */
const CODE = `0x73${ALICE.slice(2)}315f5260205ff3`;
const CALL = "eth_call";
/** Nothing is prefetched for a payload of this size. A node without the methods of a prefetch would not be asked alone. */
const LONG_DATA = `0x${"00".repeat(20_000)}`;
const FORGED = 0x7777n;
const isForged = (result: unknown): boolean => String(result).includes("7777");
const FORGED_ERROR = { code: 3, message: "execution reverted: 7777", data: "0x7777" };
const OVERRIDES = { [CONTRACT]: { code: CODE } };

/** Reads of the same balances. The forged results contain 7777. */
const READS: readonly (readonly [string, readonly unknown[]])[] = [
  ["eth_getBalance", [ALICE]],
  ["eth_getTransactionCount", [ALICE]],
  ["eth_getCode", [ALICE]],
  ["eth_getStorageAt", [ALICE, "0x1"]],
];
const SINGLE_VALUES = READS.map(([method]) => method);
const STATE_METHODS = [...SINGLE_VALUES, CALL];

const forge = (result: unknown, method: string): unknown => {
  if (method === "eth_getCode") {
    return "0x7777";
  }
  return `0x${FORGED.toString(16).padStart(method === "eth_getStorageAt" ? 64 : 4, "0")}`.padEnd(
    method === CALL ? String(result).length : 0,
    "7",
  );
};

/** Returns another value for each read of the state, and another result for each call. */
const LIES_IN_STATE: Lie = {
  ...{ name: "lies in state", methods: STATE_METHODS },
  result: (result, { method }) => forge(result, method),
};
const REVERTS: Lie = {
  ...{ name: "reverts", methods: [CALL] },
  response: (_, { id }) => ({ jsonrpc: "2.0", id, error: FORGED_ERROR }),
};
const DOWN: Lie = { name: "down", methods: STATE_METHODS, http: () => ({ status: 503, text: "<html>later</html>" }) };

interface Answer {
  readonly result: unknown;
  readonly error: unknown;
  readonly status: number;
}

/** A service in front of nodes of several origins. The first one is asked first. */
const startRig = async (
  t: TestContext,
  origins: number,
  { agree, ...state }: NonNullable<ServiceChain["state"] & ServiceChain["reads"]> = { agree: 2 },
) => {
  const chain = new StandInChain("prague");
  chain.mine([[ALICE, 1n]]);
  chain.mine();
  const nodes: WorldNode[] = [];
  for (let count = 0; count < origins; count++) {
    nodes.push(await startWorldNode(t, chain, { traces: "geth" }));
  }
  const service = await createService({
    nodes: nodes.map(({ url }, priority) => ({ name: `node${priority}`, url, priority: Math.min(priority, 9) })),
    ...{ blockTimeMs: LONG_MS, forks: "prague", upstream: { hedge: { maxShare: 0 }, breaker: { openMs: 500 } } },
    state: { source: "trace", waitMs: LONG_MS, ...state },
    simulate: { timeoutMs: LONG_MS },
    ...(agree && { reads: { agree } }),
  });
  t.after(() => service.close());
  const upstreams = service.chains[0]?.upstreams;
  await until(() => upstreams?.nodes.every(({ head }) => head !== undefined) ?? false, "all heads are known");
  const read = async (method: string, params: readonly unknown[], block: unknown = "latest"): Promise<Answer> => {
    const { body, status } = await rpc(service.url, method, [...params, block]);
    return { result: body.result, error: body.error, status };
  };
  const call = async (block: unknown = "latest"): Promise<Answer> => {
    const { body, status } = await rpc(service.url, CALL, [{ to: CONTRACT, data: "0x" }, block, OVERRIDES]);
    return { result: body.result, error: body.error, status };
  };
  const simulate = async (data = "0x"): Promise<Answer> => {
    const calls = [{ to: CONTRACT, gas: "0xf4240", data }];
    const payload = { blockStateCalls: [{ stateOverrides: OVERRIDES, calls }] };
    const answer = await read("eth_simulateV1", [payload]);
    const blocks = answer.result as [{ readonly calls: readonly [{ readonly returnData: string }] }] | undefined;
    return { ...answer, result: blocks?.[0].calls[0].returnData };
  };
  const mine = async (balance?: bigint): Promise<void> => {
    chain.mine(balance === undefined ? [] : [[ALICE, balance]]);
    await followHead(service, chain);
  };
  const asked = (...methods: readonly string[]): number =>
    nodes.reduce((sum, { calls }) => sum + methods.reduce((all, method) => all + (calls.get(method) ?? 0), 0), 0);
  const count = (name: string, ...labels: readonly string[]) => metric(service.opsUrl, `forebay_${name}`, ...labels);
  const node = (index: number): WorldNode => {
    const found = nodes[index];
    assert.ok(found);
    return found;
  };
  const reload = (changed: Partial<ServiceChain>) => service.reload({}, changed);
  return { read, call, simulate, mine, asked, count, node, reload };
};

type Rig = Awaited<ReturnType<typeof startRig>>;

const assertTrue = ({ result, error }: Answer, what: string): void => {
  assert.equal(error, undefined, what);
  assert.equal(isForged(result), false, what);
};

for (const liar of [0, 1, 2]) {
  test(`no value of a liar at position ${liar} of three is served or becomes known`, async (t) => {
    const rig = await startRig(t, 3);
    rig.node(liar).fault = { lies: [LIES_IN_STATE] };
    for (let block = 0; block < 6; block++) {
      for (const account of ACCOUNTS) {
        assertTrue(await rig.read("eth_getBalance", [account]), account);
      }
      for (const at of ["latest", "0x1", "finalized"]) {
        for (const [method, params] of READS) {
          assertTrue(await rig.read(method, params, at), `${method} at ${at}`);
        }
        assertTrue(await rig.call(at), `a call at ${at}`);
      }
      assertTrue(await rig.simulate(), "a simulation");
      await rig.mine();
    }
    assert.ok((await rig.count("state_lookups_total", 'outcome="hit"')) > 0, "values are known");
    for (const other of [0, 1, 2].filter((each) => each !== liar)) {
      assert.equal(await rig.count("upstream_suspended", `node="node${other}"`), 0);
    }
    assert.equal(await rig.count("state_disagreements_total"), 0);
  });
}

for (const [method, params] of READS) {
  test(`the node that lies about ${method} is suspended once two others contradict it`, async (t) => {
    const rig = await startRig(t, 3);
    rig.node(0).fault = { lies: [LIES_IN_STATE] };
    // All three are asked, and their support of block hashes is known afterwards.
    await rig.call();
    const before = rig.asked(method);
    assertTrue(await rig.read(method, params), method);
    assert.equal(await rig.count("verify_failures_total", 'check="state"', 'node="node0"'), 1);
    assert.equal(await rig.count("upstream_suspended", 'node="node0"'), 1);
    assert.equal(rig.asked(method) - before, 3);
  });
}

for (const lie of [LIES_IN_STATE, REVERTS]) {
  test(`a call on which a node ${lie.name} has the result of two others, and no node is suspended`, async (t) => {
    const rig = await startRig(t, 3);
    rig.node(0).fault = { lies: [lie] };
    const { result } = await rig.call();
    assert.equal(result, `0x${"1".padStart(64, "0")}`);
    assert.equal(await rig.count("upstream_suspended"), 0);
  });
}

test("a call that fails on two origins fails with the error of the node", async (t) => {
  const rig = await startRig(t, 2);
  rig.node(0).fault = { lies: [REVERTS] };
  rig.node(1).fault = { lies: [REVERTS] };
  assert.deepEqual((await rig.call()).error, FORGED_ERROR);
});

for (const { agree, calls } of [
  { agree: 2, calls: 2 },
  { agree: undefined, calls: 1 },
] as const) {
  test(`with reads.agree ${agree ?? "by default"}, a read costs ${calls} calls, and none once it is cached`, async (t) => {
    const rig = await startRig(t, 3, { agree, follow: false });
    const ofCalls = rig.asked(CALL);
    await rig.call();
    await rig.call();
    assert.equal(rig.asked(CALL) - ofCalls, calls);
    for (const [method, params] of READS) {
      const before = rig.asked(method);
      for (let times = 0; times < 3; times++) {
        assertTrue(await rig.read(method, params), method);
      }
      assert.equal(rig.asked(method) - before, calls, method);
    }
  });
}

test("a known value costs no call with reads.agree 2, after its first read of two origins", async (t) => {
  const rig = await startRig(t, 2);
  /** Seals a block, and reads all balances. Returns the number of calls to nodes. */
  const turn = async (): Promise<number> => {
    await rig.mine();
    const before = rig.asked("eth_getBalance");
    for (const account of ACCOUNTS) {
      assertTrue(await rig.read("eth_getBalance", [account]), account);
    }
    return rig.asked("eth_getBalance") - before;
  };
  await rig.call();
  const first = await turn();
  assert.equal(first, 2 * ACCOUNTS.length);
  for (let blocks = 0; (await turn()) > 0; blocks++) {
    assert.ok(blocks < 200, "the balances become known");
  }
});

test("while one of two origins is down, the value of the other is served, and is compared afterwards", async (t) => {
  const rig = await startRig(t, 2);
  rig.node(1).fault = { lies: [DOWN] };
  rig.node(0).fault = { lies: [LIES_IN_STATE] };
  for (let times = 0; times < 12; times++) {
    for (const [method, params] of READS) {
      assert.ok(isForged((await rig.read(method, params)).result), `${method} is not refused`);
    }
  }
  rig.node(0).fault = { lies: [] };
  rig.node(1).fault = { lies: [] };
  await until(async () => !isForged((await rig.read("eth_getBalance", [ALICE])).result), "the other origin is asked");
  for (const [method, params] of READS) {
    assertTrue(await rig.read(method, params), "the value of one is not used any more");
  }
  assertTrue(await rig.simulate(), "and did not become known");
});

test("a second origin without the state costs the first one no further call", async (t) => {
  const rig = await startRig(t, 2);
  await rig.call();
  const error = { code: -32_000, message: "missing trie node 00" };
  rig.node(1).fault = {
    lies: [{ ...{ name: "pruned", methods: STATE_METHODS }, response: (_, { id }) => ({ jsonrpc: "2.0", id, error }) }],
  };
  const callsOf = (index: number): number =>
    STATE_METHODS.reduce((sum, method) => sum + (rig.node(index).calls.get(method) ?? 0), 0);
  for (const [method, params] of READS) {
    const before = [callsOf(0), callsOf(1)];
    assertTrue(await rig.read(method, params), method);
    assert.deepEqual([callsOf(0) - (before[0] ?? 0), callsOf(1) - (before[1] ?? 0)], [1, 1], method);
  }
  const before = callsOf(0);
  assertTrue(await rig.simulate(), "a simulation");
  const calls = callsOf(0) - before;
  rig.node(1).fault = { lies: [] };
  await rig.mine();
  const ofFirst = callsOf(0);
  assertTrue(await rig.simulate(), "a simulation of two origins");
  assert.equal(callsOf(0) - ofFirst, calls, "as many as if the second one answers");
});

const assertContested = ({ result, error, status }: Answer): void => {
  assert.equal(result, undefined);
  assert.match(JSON.stringify(error), /nodes of two providers return different results/);
  assert.equal(status, 503);
};

test("of two origins that differ none is served or cached, until they agree again", async (t) => {
  const rig = await startRig(t, 2);
  rig.node(1).fault = { lies: [LIES_IN_STATE] };
  for (const [method, params] of READS) {
    assertContested(await rig.read(method, params));
  }
  assertContested(await rig.call());
  assertContested(await rig.simulate());
  assert.ok((await rig.count("state_disagreements_total")) >= READS.length + 1);
  assert.equal(await rig.count("upstream_suspended"), 0);
  rig.node(1).fault = { lies: [] };
  for (const [method, params] of READS) {
    assertTrue(await rig.read(method, params), method);
  }
  assertTrue(await rig.call(), "a call");
  assertTrue(await rig.simulate(), "a simulation");
});

/** Resolves with the answers to all reads. */
const readAll = (rig: Rig): Promise<readonly Answer[]> =>
  Promise.all(READS.map(([method, params]) => rig.read(method, params)));

test("a second origin that does not respond fails no read", async (t) => {
  const rig = await startRig(t, 2);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  t.after(() => release());
  rig.node(1).fault = {
    lies: [
      {
        ...{ name: "hangs", methods: STATE_METHODS },
        response: async (response) => {
          await released;
          return response;
        },
      },
    ],
  };
  for (const answer of await readAll(rig)) {
    assertTrue(answer, "one origin alone");
  }
  assertTrue(await rig.simulate(LONG_DATA), "an execution");
});

test("what one of two origins alone stated of an execution's state is read again at the same block", async (t) => {
  const rig = await startRig(t, 2);
  await rig.call();
  const error = { code: -32_000, message: "missing trie node 00" };
  rig.node(0).fault = { lies: [LIES_IN_STATE] };
  rig.node(1).fault = {
    lies: [{ ...{ name: "pruned", methods: STATE_METHODS }, response: (_, { id }) => ({ jsonrpc: "2.0", id, error }) }],
  };
  assert.ok(isForged((await rig.simulate(LONG_DATA)).result), "the first result is served");
  rig.node(0).fault = { lies: [] };
  rig.node(1).fault = { lies: [] };
  assertTrue(await rig.simulate(LONG_DATA), "it is not used again");
  const asked = rig.asked(...STATE_METHODS);
  assertTrue(await rig.simulate(LONG_DATA), "the value of two");
  assert.equal(rig.asked(...STATE_METHODS), asked, "which is");
});

test("what one origin alone has stated ends with a reload that requires two", async (t) => {
  const rig = await startRig(t, 2, { agree: undefined });
  rig.node(0).fault = { lies: [LIES_IN_STATE] };
  const isKnown = async (): Promise<boolean> => (await rig.count("state_lookups_total", 'outcome="hit"')) > 0;
  for (let blocks = 0; blocks < 200 && !(await isKnown()); blocks++) {
    await rig.mine();
    for (const account of ACCOUNTS) {
      assert.ok(isForged((await rig.read("eth_getBalance", [account])).result));
    }
  }
  assert.ok(await isKnown());
  rig.node(0).fault = { lies: [] };
  await rig.reload({ reads: { agree: 2 } });
  for (const account of ACCOUNTS) {
    assertTrue(await rig.read("eth_getBalance", [account]), account);
  }
});
