import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Address, formatQuantity } from "../../src/ethereum/hex.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";
import { startWorldNode, type WorldNode, type WorldNodeOptions } from "../world/nodes/worldNode.ts";
import { FeedWorld } from "../world/state/feedWorld.ts";
import { StandInChain } from "../world/state/standInChain.ts";
import { createWalletCalls, WalletWorld } from "../world/state/walletWorld.ts";

/** Long, so that no write set is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const SENDER = addressOf(0);
const [ALICE, CONTRACT] = [addressOf(1), addressOf(2)];
const ACCOUNTS: readonly Address[] = [SENDER, ALICE, CONTRACT, addressOf(100)];
/** Balance, nonce and code. */
const CALLS_OF_ACCOUNT = 3;
/** Returns the balance of ALICE and the value of slot 0. */
const CODE = `0x73${ALICE.slice(2)}315f525f5460205260405ff3`;
const STATE_METHODS = [
  ...["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt", "eth_getProof"],
  ...["eth_call", "eth_createAccessList", "debug_traceCall"],
];
const NO_CACHE = { "cache-control": "no-cache" };

/** The calls of executions for state, and for predictions of it. */
const stateCalls = ({ calls }: WorldNode): number =>
  STATE_METHODS.reduce((sum, method) => sum + (calls.get(method) ?? 0), 0);

const startRig = async (
  t: TestContext,
  state: ServiceChain["state"] = {},
  source: Pick<WorldNodeOptions, "traces" | "beforeResponse"> = {},
) => {
  const chain = new StandInChain(source.traces === undefined ? "amsterdam" : "prague");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const node = await startWorldNode(t, chain, source);
  const service = await createService({
    nodes: [{ url: node.url }],
    blockTimeMs: LONG_MS,
    forks: chain.fork === "amsterdam" ? "amsterdam" : "prague",
    state: { waitMs: LONG_MS, ...state },
  });
  t.after(() => service.close());
  /** Seals a block, and makes it the served head. */
  const mine = async (balances: Parameters<StandInChain["mine"]>[0] = []) => {
    chain.mine(balances);
    await followHead(service, chain);
  };
  return { chain, node, service, mine };
};

type Rig = Awaited<ReturnType<typeof startRig>>;

/** Reads all values of the simulation as a client that reads values one by one, until following pays. */
const learn = async ({ service, mine }: Rig): Promise<void> => {
  for (let count = 0; count < 4; count++) {
    await mine();
    for (const address of ACCOUNTS) {
      for (const method of ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"]) {
        await rpc(service.url, method, [address, "latest"]);
      }
    }
    await rpc(service.url, "eth_getStorageAt", [CONTRACT, "0x0", "latest"]);
  }
};

const payload = {
  blockStateCalls: [
    { stateOverrides: { [CONTRACT]: { code: CODE } }, calls: [{ from: SENDER, to: CONTRACT, gas: "0x186a0" }] },
  ],
};

/** Returns the balance that a simulation after a block sees. */
const simulate = async ({ url }: Service, block: unknown = "latest", headers = {}): Promise<bigint> => {
  const { body, text } = await rpc(url, "eth_simulateV1", [payload, block], headers);
  assert.equal(body.error, undefined, text);
  const [{ calls }] = body.result as [{ readonly calls: readonly [{ readonly returnData: string }] }];
  return BigInt(calls[0].returnData.slice(0, 66));
};

test("a simulation asks no node for values that forebay knows after its block", async (t) => {
  const rig = await startRig(t);
  await learn(rig);
  const { node, service, mine, chain } = rig;
  await mine();
  const before = stateCalls(node);
  assert.equal(await simulate(service), 1n);
  await mine([[ALICE, 7n]]);
  assert.equal(await simulate(service), 7n);
  const { number, hash } = chain.head;
  assert.equal(await simulate(service, formatQuantity(number - 1)), 1n);
  assert.equal(await simulate(service, { blockHash: hash }), 7n);
  assert.equal(stateCalls(node), before);
  assert.ok((await metric(service.opsUrl, "forebay_simulate_known_total")) > 0);
});

test("a simulation that is repeated at each head reads its values from a node a few times", async (t) => {
  const { node, service, mine } = await startRig(t);
  for (let count = 0; count < 4; count++) {
    await mine();
    await simulate(service);
  }
  const before = stateCalls(node);
  for (const balance of [5n, 6n, 7n]) {
    await mine([[ALICE, balance]]);
    assert.equal(await simulate(service), balance);
  }
  assert.equal(stateCalls(node), before);
});

test("values that a simulation read at a block that was undone meanwhile answer no later read", async (t) => {
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  const beforeResponse = (method: string) => {
    const isFirst = isHeld && method === "eth_getBalance";
    isHeld &&= !isFirst;
    return isFirst ? held.promise : undefined;
  };
  const rig = await startRig(t, {}, { beforeResponse });
  await learn(rig);
  const { node, service, mine, chain } = rig;
  const unknown = addressOf(50);
  await mine([[unknown, 5n]]);
  await mine();
  isHeld = true;
  const before = stateCalls(node);
  const call = { from: SENDER, to: unknown, gas: "0x186a0" };
  const late = rpc(service.url, "eth_simulateV1", [{ blockStateCalls: [{ calls: [call] }] }, "latest"]);
  await until(() => stateCalls(node) > before, "the simulation asks the node");
  chain.rewind(2);
  for (let count = 0; count < 3; count++) {
    chain.mine();
  }
  await mine();
  // It waits for the write set of the new head.
  assert.equal((await rpc(service.url, "eth_getBalance", [ALICE, "latest"])).body.result, "0x1");
  held.resolve();
  const { body, text } = await late;
  assert.equal(body.error, undefined, text);
  assert.equal((await rpc(service.url, "eth_getBalance", [unknown, "latest"])).body.result, "0x0");
});

test("a simulation at an orphan reads the orphan's own state", async (t) => {
  const rig = await startRig(t);
  await learn(rig);
  const { node, service, mine, chain } = rig;
  await mine([[ALICE, 5n]]);
  const orphan = chain.head.hash;
  chain.rewind(1);
  chain.mine([[ALICE, 8n]]);
  await mine();
  const before = stateCalls(node);
  assert.equal(await simulate(service), 8n);
  assert.equal(stateCalls(node), before);
  assert.equal(await simulate(service, { blockHash: orphan }), 5n);
  assert.ok(stateCalls(node) > before);
});

test("no-cache asks a node", async (t) => {
  const rig = await startRig(t);
  await learn(rig);
  const { node, service, mine } = rig;
  await mine();
  const before = stateCalls(node);
  await simulate(service, "latest", NO_CACHE);
  assert.ok(stateCalls(node) >= before + CALLS_OF_ACCOUNT * 3);
});

test("a simulation whose block's write set is late asks a node", async (t) => {
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  const beforeResponse = (method: string) => (isHeld && method === "eth_getBlockAccessList" ? held.promise : undefined);
  const rig = await startRig(t, { waitMs: 1 }, { beforeResponse });
  t.after(() => held.resolve());
  await learn(rig);
  const { node, service, mine } = rig;
  isHeld = true;
  await mine([[ALICE, 4n]]);
  const before = stateCalls(node);
  assert.equal(await simulate(service), 4n);
  assert.ok(stateCalls(node) > before);
});

test("a wrong value that was dropped answers no simulation any more, also at the same block", async (t) => {
  const state = { source: "trace" } as const;
  const rig = await startRig(t, state, { traces: "geth" });
  await learn(rig);
  const { service, mine } = rig;
  // The trace does not show this write.
  await mine([[ALICE, 9n]]);
  assert.equal(await simulate(service), 1n);
  await rpc(service.url, "eth_getBalance", [ALICE, "latest"], NO_CACHE);
  await until(async () => (await metric(service.opsUrl, "forebay_state_differences_total")) === 1, "it is found");
  assert.equal(await simulate(service), 9n);
});

test("calls at pending ask no node for values that forebay knows after the base block", async (t) => {
  const options = { wallets: 4, pools: 1, seed: 1 };
  const chain = new StandInChain("prague");
  const world = new WalletWorld(chain, options);
  await world.genesis();
  world.mine();
  const [feed, node] = [await createFakeFeed(), await startWorldNode(t, chain)];
  t.after(() => feed.close());
  const sequencer = await FeedWorld.create(chain, options, createRandom(options.seed));
  const connected = feed.connected();
  const service = await createService({
    nodes: [{ url: node.url }],
    blockTimeMs: LONG_MS,
    forks: "prague",
    pending: { mode: "feed", feeds: [feed.url] },
    state: { waitMs: LONG_MS },
  });
  t.after(() => service.close());
  await connected;
  const [, , , balances] = createWalletCalls(1)(false);
  const call = balances?.params[0];
  const askAll = async (): Promise<void> => {
    for (const [method, params] of [
      ["eth_call", [call, "pending"]],
      ["eth_estimateGas", [call, "pending"]],
      ["eth_createAccessList", [call, "pending"]],
      ["eth_simulateV1", [{ blockStateCalls: [{ calls: [call] }] }, "pending"]],
    ] as const) {
      const { body, headers, text } = await rpc(service.url, method, params);
      assert.equal(body.error, undefined, text);
      assert.equal(headers.get("x-forebay-pending"), "live", method);
    }
  };
  /** Announces a block, asks at `pending`, and seals it. */
  const turn = async (): Promise<number> => {
    feed.send(await sequencer.begin());
    feed.send(await sequencer.step(1));
    const height = formatQuantity(chain.height + 1);
    await until(async () => {
      const { body } = await rpc(service.url, "eth_getBlockByNumber", ["pending", false]);
      const block = body.result as { readonly number: string; readonly transactions: readonly unknown[] } | null;
      return block?.number === height && block.transactions.length > 0;
    }, "the block is pending");
    const before = stateCalls(node);
    await askAll();
    const asked = stateCalls(node) - before;
    sequencer.seal();
    await service.chains[0]?.upstreams.heads.refresh();
    return asked;
  };
  assert.ok((await turn()) > 0);
  await turn();
  assert.equal(await turn(), 0);
  assert.equal(await turn(), 0);
});
