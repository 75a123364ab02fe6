import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Status } from "../../src/admin/status.ts";
import { createProcess } from "../../src/app/main.ts";
import { configSchema } from "../../src/config/schema.ts";
import { type Address, formatQuantity } from "../../src/ethereum/hex.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { followAnvil, followHead } from "../support/servers/followHead.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";
import { ComparedReads } from "../world/judge/comparedReads.ts";
import { createStateReads } from "../world/judge/stateReads.ts";
import { startTraced } from "../world/nodes/startTraced.ts";
import { startWorldNode, type WorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";
import { compareSteps, createStateChain } from "../world/state/stateChain.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const STATE_HIT = "forebay; hit; detail=state";
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const TRACES = { source: "trace" } as const;
const [ALICE, BOB] = [addressOf(0), addressOf(1)];

/** One answer of a hundred is compared with the node. Above that share, none is. */
const NOT_COMPARED = 0.5;

const startRig = async (t: TestContext, options: Partial<ServiceChain> = {}) => {
  // Each test counts the requests to the node.
  t.mock.method(Math, "random", () => NOT_COMPARED);
  const chain = new StandInChain("amsterdam");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const node = await startWorldNode(t, chain);
  const service = await createService({
    nodes: [{ url: node.url }],
    blockTimeMs: LONG_MS,
    forks: "prague",
    ...options,
    state: { waitMs: LONG_MS, ...options.state },
  });
  t.after(() => service.close());
  const follow = () => followHead(service, chain);
  const balance = (address: Address, tag: unknown = "latest") => rpc(service.url, "eth_getBalance", [address, tag]);
  /** Seals a block, and reads all accounts. */
  const turn = async () => {
    chain.mine();
    await follow();
    for (const address of ACCOUNTS) {
      await balance(address);
    }
  };
  const asked = () => node.calls.get("eth_getBalance") ?? 0;
  return { ...{ chain, node, service, follow, balance, turn, asked } };
};

const statusOf = ({ headers }: { readonly headers: Headers }) => headers.get("cache-status");

/** Sends a call that must not be answered from a cache. */
const uncached = async (service: Service, method: string, params: readonly unknown[]) => {
  const response = await fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json", "cache-control": "no-cache" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  return (await response.json()) as { readonly result?: unknown };
};

/** Reads the same values in several blocks, until it pays to follow. */
const learn = async ({ turn }: Awaited<ReturnType<typeof startRig>>): Promise<void> => {
  for (let count = 0; count < 4; count++) {
    await turn();
  }
};

test("a value that no block wrote is answered without a node, by tag, number and hash", async (t) => {
  const rig = await startRig(t);
  await learn(rig);
  const { chain, follow, balance, asked } = rig;
  const before = asked();
  chain.mine([[BOB, 2n]]);
  await follow();
  const { number, hash } = chain.head;
  for (const tag of ["latest", formatQuantity(number), hash, { blockHash: hash }]) {
    const alice = await balance(ALICE, tag);
    assert.equal(statusOf(alice), STATE_HIT);
    assert.equal(alice.body.result, "0x1");
  }
  assert.equal((await balance(BOB)).body.result, "0x2");
  assert.equal((await balance(BOB, formatQuantity(number - 1))).body.result, "0x1");
  assert.equal(asked(), before);
});

test("all four methods are answered from known state", async (t) => {
  const rig = await startRig(t);
  await learn(rig);
  const { chain, follow, service } = rig;
  const calls: readonly [string, readonly unknown[], string][] = [
    ["eth_getBalance", [ALICE], "0x1"],
    ["eth_getTransactionCount", [ALICE], "0x0"],
    ["eth_getStorageAt", [ALICE, "0x1"], `0x${"0".repeat(64)}`],
    ["eth_getCode", [ALICE], "0x"],
  ];
  for (const [method, params] of calls) {
    await rpc(service.url, method, [...params, "latest"]);
  }
  chain.mine();
  await follow();
  for (const [method, params, expected] of calls) {
    const response = await rpc(service.url, method, [...params, "latest"]);
    assert.equal(statusOf(response), STATE_HIT, method);
    assert.equal(response.body.result, expected);
  }
  const { chains } = (await (await fetch(new URL("/status.json", service.url))).json()) as Status;
  const { values = 0, bytes = 0, readShare } = chains[0]?.knownState ?? {};
  assert.ok(values >= calls.length && bytes > 0 && readShare, JSON.stringify(chains[0]?.knownState));
});

test("a reorganisation undoes its blocks, and a read at an orphan's hash asks the node", async (t) => {
  const rig = await startRig(t);
  await learn(rig);
  const { chain, follow, balance, asked } = rig;
  chain.mine([[ALICE, 5n]]);
  await follow();
  const orphan = chain.head.hash;
  assert.equal((await balance(ALICE)).body.result, "0x5");
  chain.rewind(1);
  chain.mine([[BOB, 7n]]);
  chain.mine();
  await follow();
  const before = asked();
  const alice = await balance(ALICE);
  assert.deepEqual([statusOf(alice), alice.body.result], [STATE_HIT, "0x1"]);
  assert.equal((await balance(BOB)).body.result, "0x7");
  assert.equal(asked(), before);
  assert.equal((await balance(ALICE, orphan)).body.result, "0x5");
  assert.equal(asked(), before + 1);
});

test("no-cache asks the node", async (t) => {
  const rig = await startRig(t);
  await learn(rig);
  const { chain, follow, service, asked } = rig;
  chain.mine();
  await follow();
  const before = asked();
  await uncached(service, "eth_getBalance", [ALICE, "latest"]);
  assert.equal(asked(), before + 1);
});

test("state.follow: false follows nothing", async (t) => {
  const rig = await startRig(t, { state: { follow: false } });
  await learn(rig);
  assert.equal(await metric(rig.service.opsUrl, "forebay_state_write_sets_total"), 0);
  assert.equal(rig.node.calls.get("eth_getBlockAccessList"), undefined);
});

test("state.follow changes with a reload", async (t) => {
  const chain = new StandInChain("amsterdam");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const node = await startWorldNode(t, chain);
  const configOf = (follow: "auto" | false) =>
    configSchema.parse({
      chains: [{ name: "chain", nodes: [{ url: node.url }], blockTimeMs: LONG_MS, forks: "prague", state: { follow } }],
      server: { port: 0, opsPort: 0, drainDelayMs: 0 },
      log: { level: "silent" },
    });
  const forebay = await createProcess(configOf("auto"), createTelemetry({ level: "silent" }));
  t.after(() => forebay.close());
  await forebay.ready;
  /** Returns the number of write sets that were read while blocks were sealed and read. */
  const countWriteSets = async (): Promise<number> => {
    node.calls.clear();
    for (let count = 0; count < 5; count++) {
      chain.mine();
      await followHead(forebay, chain);
      for (const address of ACCOUNTS) {
        await rpc(forebay.url, "eth_getBalance", [address, "latest"]);
      }
    }
    return node.calls.get("eth_getBlockAccessList") ?? 0;
  };
  assert.ok((await countWriteSets()) > 0);
  await forebay.reload(configOf(false));
  assert.equal(await countWriteSets(), 0);
});

/** A forebay on two nodes of a chain. All accounts are known. */
const startForReload = async (t: TestContext) => {
  const chain = new StandInChain("amsterdam");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const nodes = [await startWorldNode(t, chain), await startWorldNode(t, chain)] as const;
  const configOf = (used: readonly WorldNode[], more: Partial<ServiceChain> = {}) =>
    configSchema.parse({
      chains: [
        {
          ...{
            name: "chain",
            nodes: used.map(({ url }, index) => ({ name: `node${index + 1}`, url, provider: "one" })),
          },
          ...{ blockTimeMs: LONG_MS, forks: "prague", state: { waitMs: LONG_MS }, ...more },
        },
      ],
      cache: { memoryBytes: 0 },
      server: { port: 0, opsPort: 0, drainDelayMs: 0 },
      log: { level: "silent" },
    });
  const forebay = await createProcess(configOf(nodes.slice(0, 1)), createTelemetry({ level: "silent" }));
  t.after(() => forebay.close());
  await forebay.ready;
  const balances = new Map<Address, bigint>();
  /** Reads all accounts. Returns the number of those that nodes were asked for. */
  const readAll = async (): Promise<number> => {
    let asked = 0;
    for (const address of ACCOUNTS) {
      const response = await rpc(forebay.url, "eth_getBalance", [address, "latest"]);
      assert.equal(response.body.result, formatQuantity(balances.get(address) ?? 1n));
      asked += statusOf(response) === STATE_HIT ? 0 : 1;
    }
    return asked;
  };
  /** Seals a block with these balances, and reads all accounts. */
  const turn = async (changes: readonly (readonly [Address, bigint])[] = []) => {
    chain.mine(changes);
    for (const [address, balance] of changes) {
      balances.set(address, balance);
    }
    await followHead(forebay, chain);
    return readAll();
  };
  for (let count = 0; count < 4; count++) {
    await turn();
  }
  assert.equal(await turn(), 0, "all is known");
  return { forebay, nodes, configOf, readAll, turn };
};

test("known values survive a reload that adds a node, and are followed after it", async (t) => {
  const { forebay, nodes, configOf, readAll, turn } = await startForReload(t);
  await forebay.reload(configOf(nodes));
  assert.equal(await readAll(), 0);
  assert.equal(await turn([[ALICE, 77n]]), 0);
  // A second reload takes over what the first one took over.
  await forebay.reload(configOf(nodes, { upstream: { timeoutMs: 31_000 } }));
  assert.equal(await turn(), 0);
});

test("a reload with other rules, or other options of the state, drops known values", async (t) => {
  const { forebay, nodes, configOf, readAll } = await startForReload(t);
  await forebay.reload(configOf(nodes, { forks: "cancun" }));
  assert.equal(await readAll(), ACCOUNTS.length);
  await forebay.reload(configOf(nodes, { forks: "cancun", state: { waitMs: LONG_MS, cacheBytes: 1_000_000 } }));
  assert.equal(await readAll(), ACCOUNTS.length);
});

test("a reload that removes a node drops all values", async (t) => {
  const { forebay, nodes, configOf, readAll } = await startForReload(t);
  await forebay.reload(configOf(nodes.slice(1)));
  assert.equal(await readAll(), ACCOUNTS.length);
});

/** A service in front of anvil, with one balance read in several blocks. */
const startOnAnvil = async (t: TestContext, state: ServiceChain["state"]) => {
  const anvil = await startAnvil(["--no-mining"]);
  t.after(() => anvil.close());
  const service = await createService({
    nodes: [{ url: anvil.url }],
    blockTimeMs: LONG_MS,
    forks: "prague",
    allowNamespaces: ["anvil"],
    state: { waitMs: LONG_MS, ...TRACES, ...state },
  });
  t.after(() => service.close());
  const mine = async () => {
    await anvil.call("evm_mine");
    await followAnvil(service, anvil);
  };
  const turn = async () => {
    await mine();
    for (const address of ACCOUNTS) {
      await rpc(service.url, "eth_getBalance", [address, "latest"]);
    }
  };
  for (let count = 0; count < 4; count++) {
    await turn();
  }
  return { anvil, service, mine, turn };
};

test("a development node is not followed by default", async (t) => {
  const { service } = await startOnAnvil(t, {});
  assert.equal(await metric(service.opsUrl, "forebay_state_write_sets_total"), 0);
});

test("a method that changes a development node's state drops all values", async (t) => {
  const { service, mine, turn } = await startOnAnvil(t, { follow: "plain" });
  await turn();
  await mine();
  const balance = () => rpc(service.url, "eth_getBalance", [ALICE, "latest"]);
  assert.equal(statusOf(await balance()), STATE_HIT);
  await rpc(service.url, "anvil_setBalance", [ALICE, "0x77"]);
  assert.equal((await balance()).body.result, "0x77");
  assert.equal(await metric(service.opsUrl, "forebay_state_drops_total", 'reason="nodeChanged"'), 2);
});

test("a method that changes a development node's state ends what executions read, also if it is not followed", async (t) => {
  const { service } = await startOnAnvil(t, {});
  const reader = `0x${"c0".repeat(20)}`;
  const code = `0x73${ALICE.slice(2)}315f5260205ff3`;
  const payload = { blockStateCalls: [{ stateOverrides: { [reader]: { code } }, calls: [{ to: reader }] }] };
  const balance = async (): Promise<bigint> => {
    const { body, text } = await rpc(service.url, "eth_simulateV1", [payload, "latest"]);
    assert.equal(body.error, undefined, text);
    const [{ calls }] = body.result as [{ readonly calls: readonly [{ readonly returnData: string }] }];
    return BigInt(calls[0].returnData);
  };
  assert.equal(await balance(), 0n);
  await rpc(service.url, "anvil_setBalance", [ALICE, "0x77"]);
  assert.equal(await balance(), 0x77n);
});

test("a node's value that differs from the known one drops all values", async (t) => {
  const { service, anvil, mine, turn } = await startOnAnvil(t, { follow: "plain" });
  await turn();
  await mine();
  // No write set shows this change, and forebay does not see the call.
  await anvil.call("anvil_setBalance", ALICE, "0x77");
  assert.equal((await rpc(service.url, "eth_getBalance", [ALICE, "latest"])).body.result, "0x0");
  assert.equal((await uncached(service, "eth_getBalance", [ALICE, "latest"])).result, "0x77");
  // The values are compared after the response.
  const drops = () => metric(service.opsUrl, "forebay_state_drops_total", 'reason="difference"');
  await until(async () => (await drops()) === 1, "the values are dropped");
  assert.equal(await metric(service.opsUrl, "forebay_state_differences_total", 'kind="read"'), 1);
  assert.equal((await rpc(service.url, "eth_getBalance", [ALICE, "latest"])).body.result, "0x77");
  const writeSets = () => metric(service.opsUrl, "forebay_state_write_sets_total");
  const before = await writeSets();
  await turn();
  await turn();
  assert.equal(await writeSets(), before, "the source of the wrong value rests");
});

test("blocks that are read for a trace are no reads of clients: no receipts are prefetched", async (t) => {
  const chain = new StandInChain("prague");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const { node, service } = await startTraced(t, chain, TRACES);
  for (let count = 0; count < 8; count++) {
    chain.mine();
    await followHead(service, chain);
    for (const address of ACCOUNTS) {
      await rpc(service.url, "eth_getBalance", [address, "latest"]);
    }
  }
  assert.ok((node.calls.get("eth_getBlockByHash") ?? 0) > 3, "traces are read with their blocks");
  assert.equal(node.calls.get("eth_getBlockReceipts"), undefined);
});

test("known values survive reorganisations if the node pushes null for fields of a later fork", async (t) => {
  const chain = new StandInChain("prague");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const { service } = await startTraced(t, chain, TRACES, { pushes: true });
  const heads = service.chains[0]?.upstreams.heads;
  assert.ok(heads);
  const balance = () => rpc(service.url, "eth_getBalance", [ALICE, "latest"]);
  /** Seals blocks, the last of which becomes the served head when it is pushed. */
  const turn = async (blocks: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = heads.subscribe(({ heads: { latest } }) => latest.hash === chain.head.hash && resolve());
    for (let count = 0; count < blocks; count++) {
      chain.mine();
    }
    await promise;
    stop();
    for (const address of ACCOUNTS) {
      await rpc(service.url, "eth_getBalance", [address, "latest"]);
    }
  };
  for (let count = 0; count < 6; count++) {
    await turn(1);
  }
  for (const depth of [1, 2, 3, 1]) {
    chain.rewind(depth);
    await turn(depth + 1);
    assert.equal(statusOf(await balance()), STATE_HIT);
  }
  assert.equal(await metric(service.opsUrl, "forebay_state_drops_total", 'reason="fork"'), 0);
});

for (const [name, refunds] of [
  ["", undefined],
  [", with gas given back in each block and in its trace", "settled"],
  [", with gas given back in each block and not in its trace", "unsettled"],
] as const) {
  test(`random reads through reorganisations are those of the node at the same hash${name}`, async (t) => {
    const world = await createStateChain({ fork: "prague", seed: 7, length: 40, refunds });
    const { chain } = world;
    const { service } = await startTraced(t, chain, TRACES);
    const compared = new ComparedReads(chain, service, createStateReads(chain), 7);
    await compareSteps(world, { service, judge: compared, steps: 60, reorganisedEvery: 6 });
    const { differences, comparisons } = compared.tally;
    assert.deepEqual(differences, []);
    assert.ok(comparisons > 1_000, `${comparisons} comparisons`);
    assert.ok((await metric(service.opsUrl, "forebay_state_lookups_total", 'outcome="hit"')) > 100);
    assert.equal(await metric(service.opsUrl, "forebay_state_drops_total"), 0);
  });
}
