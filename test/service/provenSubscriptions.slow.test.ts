import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { type Lie, startLyingNode } from "../support/fakes/lyingNode.ts";
import { createService } from "../support/servers/service.ts";

const REQUIRE = { "x-forebay-require": "proven" };
const DOWN: Lie = { name: "down", http: () => ({ status: 503, text: "down" }) };

const hashesOf = (heads: readonly unknown[]) => heads.map((head) => Object(head).hash);

test("clients that require proven answers are told of a head once it is agreed, and others when one origin has it", async (t) => {
  const anvil = await startAnvil(["--no-mining"]);
  t.after(() => anvil.close());
  await anvil.call("anvil_mine", "0x5");
  const nodes = await Promise.all([0, 1, 2].map(() => startLyingNode({ after: (end) => t.after(end) }, anvil.url)));
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ url, provider: `operator${index}`, priority: index })),
    blockTimeMs: 400,
  });
  t.after(() => service.close());
  await until(
    async () => (await rpc(service.url, "eth_blockNumber", [], REQUIRE)).body.error === undefined,
    "an agreed head",
  );
  const [strict, other] = await Promise.all([connectSocket(service.url, REQUIRE), connectSocket(service.url)]);
  t.after(() => Promise.all([strict.close(), other.close()]));
  const [heads, all] = await Promise.all([strict.subscribe("newHeads"), other.subscribe("newHeads")]);
  const mine = async (): Promise<unknown> => {
    await anvil.call("anvil_mine", "0x1");
    return Object(await anvil.call("eth_getBlockByNumber", "latest", false)).hash;
  };

  const expected = [await mine()];
  await strict.atLeast(heads, 1);
  for (const node of nodes.slice(1)) {
    node.lies = [DOWN];
  }
  expected.push(await mine());
  await other.atLeast(all, 2);
  expected.push(await mine());
  await other.atLeast(all, 3);
  const { error } = await strict.call("eth_subscribe", "newHeads");
  assert.equal(error?.message, "not proven: no majority of several origins has the block");
  assert.deepEqual(hashesOf(heads), expected.slice(0, 1));
  for (const node of nodes) {
    node.lies = [];
  }
  await strict.atLeast(heads, 3);
  assert.deepEqual(hashesOf(heads), expected);
  assert.deepEqual(hashesOf(all), expected);
});
