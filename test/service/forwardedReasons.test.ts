import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Status } from "../../src/admin/status.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import { startCommand } from "../support/servers/command.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService } from "../support/servers/service.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";

interface Report {
  readonly chains: readonly { readonly forwarded?: readonly { readonly reason: string; readonly text: string }[] }[];
}

const COST = "nodes answer most calls, and bill 30 to 60 times as many units";
const LONG_MS = 20_000;
const ACCOUNTS = Array.from({ length: 40 }, (_, index) => addressOf(index));
const MAX_BLOCKS = 12;

const reasonsOf = ({ chains: [chain] }: Report) => (chain?.forwarded ?? []).map(({ reason }) => reason);
const readyReasons = async (opsUrl: string) => reasonsOf((await (await fetch(`${opsUrl}/readyz`)).json()) as Report);
const statusReasons = async (url: string) => reasonsOf((await (await fetch(`${url}/status.json`)).json()) as Status);

/** Starts a process. Returns the reasons of its log lines, too. */
const start = async (t: TestContext, chain: object, handlers: FakeNodeOptions["handlers"] = {}) => {
  const node = await createFakeNode({ handlers });
  t.after(() => node.close());
  const forebay = await startCommand(t, {
    chains: [{ name: "chain", nodes: [{ url: node.url }], ...chain }],
  });
  const logged = () =>
    forebay.lines.filter(({ level, msg }) => level === "warn" && msg === COST).map(({ reason }) => reason);
  return { ...forebay, logged };
};

test("log, /readyz and the status page say that unknown rules cost more", async (t) => {
  const { opsUrl, url, logged } = await start(t, {});
  await until(() => logged().join() === "rulesUnknown", "the reason is logged");
  assert.deepEqual(await readyReasons(opsUrl), ["rulesUnknown"]);
  assert.deepEqual(await statusReasons(url), ["rulesUnknown"]);
});

test("a development node costs more, and a followed one does not", async (t) => {
  const handlers = { web3_clientVersion: () => "anvil/v1.7.1" };
  const dev = await start(t, { forks: "prague" }, handlers);
  await until(async () => (await readyReasons(dev.opsUrl)).join() === "developmentNode", "the reason is reported");
  await until(() => dev.logged().join() === "developmentNode", "the reason is logged");
  const followed = await start(t, { forks: "prague", state: { follow: "plain" } }, handlers);
  assert.deepEqual(await readyReasons(followed.opsUrl), []);
  assert.deepEqual(followed.logged(), []);
});

/** Reads state of new blocks until it pays to follow it. */
const followState = async (t: TestContext, traces: "geth" | undefined) => {
  const chain = new StandInChain("prague");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const node = await startWorldNode(t, chain, { traces });
  const service = await createService({
    nodes: [{ url: node.url }],
    blockTimeMs: LONG_MS,
    forks: "prague",
    state: { waitMs: LONG_MS },
  });
  t.after(() => service.close());
  for (let block = 0; block < MAX_BLOCKS; block++) {
    chain.mine();
    await followHead(service, chain);
    for (const address of ACCOUNTS) {
      await rpc(service.url, "eth_getBalance", [address, "latest"]);
    }
  }
  return service;
};

test("nodes without traces and access lists cost more, once it would pay to follow the state", async (t) => {
  const without = await followState(t, undefined);
  await until(async () => (await readyReasons(without.opsUrl)).join() === "noSource", "the reason is reported");
  const supported = await followState(t, "geth");
  assert.deepEqual(await readyReasons(supported.opsUrl), []);
});
