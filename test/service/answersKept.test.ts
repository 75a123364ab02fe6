import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { followHead } from "../support/servers/followHead.ts";
import { loadThread } from "../support/servers/loadThread.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";
import { createWalletCalls, WalletWorld } from "../world/state/walletWorld.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const STATE_HIT = "forebay; hit; detail=state";
const WALLETS = 3;
/** One answer of a hundred is compared with the node. Above that share, none is. */
const NOT_COMPARED = 0.5;
const [, , , BALANCES] = createWalletCalls(0)(false);

/** Creates wallets on a chain, its node, and a data folder that outlives the services. */
const createRig = async (t: TestContext) => {
  t.mock.method(Math, "random", () => NOT_COMPARED);
  const parent = await mkdtemp(join(tmpdir(), "forebay-answers-"));
  t.after(() => rm(parent, { recursive: true, force: true }));
  const folder = join(parent, "data");
  const chain = new StandInChain("amsterdam");
  const world = new WalletWorld(chain, { wallets: WALLETS, pools: 1, seed: 1 });
  await world.genesis();
  const node = await startWorldNode(t, chain);
  const start = async (options: Partial<ServiceChain> = {}) => {
    const service = await createService(
      {
        ...{ nodes: [{ url: node.url, name: "own" }], blockTimeMs: LONG_MS, forks: "amsterdam" },
        ...options,
        state: { waitMs: LONG_MS, units: { "eth_getBlockAccessList*": 0 }, ...options.state },
      },
      { server: { dataDir: folder } },
    );
    t.after(() => service.close());
    await until(async () => (await metric(service.opsUrl, "forebay_disk_up")) === 1, "the folder is open");
    return service;
  };
  const follow = (service: Service) => followHead(service, chain);
  /** Sends the call, and asserts that the response is the node's. Returns whether no node was asked. */
  const isHit = async ({ url }: Service): Promise<boolean> => {
    const { body, headers } = await rpc(url, "eth_call", BALANCES?.params ?? []);
    assert.equal(body.result, (await rpc(node.url, "eth_call", BALANCES?.params ?? [])).body.result);
    return headers.get("cache-status") === STATE_HIT;
  };
  /** Sends the call at new blocks until no node is asked for it. */
  const learn = async (service: Service) => {
    await loadThread(service, BALANCES?.params[0]);
    await until(async () => {
      world.mineTransfers();
      await follow(service);
      return isHit(service);
    }, "an answer without a node");
  };
  /** Restored values answer once they passed a check. */
  const isFollowing = async ({ opsUrl }: Service) =>
    (await metric(opsUrl, "forebay_state_following")) === 1 && (await metric(opsUrl, "forebay_state_unchecked")) === 0;
  const restart = async (before: Service, options?: Partial<ServiceChain>) => {
    await before.close();
    const after = await start(options);
    await until(() => isFollowing(after), "the state is followed");
    return after;
  };
  return { world, chain, folder, node, start, restart, follow, learn, isHit };
};

test("an answer to a call survives a restart, and is computed here after a write", async (t) => {
  const { world, start, restart, follow, learn, isHit } = await createRig(t);
  const before = await start();
  await learn(before);
  const after = await restart(before);
  assert.equal(await isHit(after), true);
  world.mineTransfers();
  await follow(after);
  assert.equal(await isHit(after), true);
});

test("an answer whose values were written while forebay was down is computed here", async (t) => {
  const { world, start, restart, learn, isHit } = await createRig(t);
  const before = await start();
  await learn(before);
  world.mineTransfers();
  world.mineTransfers();
  const after = await restart(before);
  await until(async () => (await fetch(`${after.opsUrl}/readyz`)).ok, "it is ready");
  assert.equal(await isHit(after), true);
});

test("a process is ready when it has computed the answers whose values were written while it was down", async (t) => {
  const { world, start, learn, isHit } = await createRig(t);
  const before = await start();
  await learn(before);
  await before.close();
  world.mineTransfers();
  const after = await start();
  await until(async () => (await fetch(`${after.opsUrl}/readyz`)).ok, "it is ready");
  assert.equal(await metric(after.opsUrl, "forebay_state_answers_total", 'event="recomputed"'), 1);
  assert.equal(await isHit(after), true);
});

test("no call is restored if the block of the rows is not canonical any more", async (t) => {
  const { world, chain, start, restart, learn, isHit } = await createRig(t);
  const before = await start();
  await learn(before);
  chain.rewind(chain.height - 1);
  world.mine();
  assert.equal(await isHit(await restart(before)), false);
});

test("an answer survives a reload that adds a node", async (t) => {
  const { chain, world, node, start, follow, learn, isHit } = await createRig(t);
  const service = await start();
  await learn(service);
  const other = await startWorldNode(t, chain);
  const own = { url: node.url, name: "own" };
  const nodes = [own, { url: other.url, name: "other" }];
  await service.reload({}, { nodes });
  await until(() => isHit(service), "the answer goes on");
  world.mineTransfers();
  await follow(service);
  assert.equal(await isHit(service), true);
});
