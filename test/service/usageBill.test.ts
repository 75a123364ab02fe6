import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startCommand } from "../support/servers/command.ts";

const CALLS = 200;
const PRICE_OF_BALANCE = 20;
const report = z.object({
  keys: z.array(z.unknown()),
  addresses: z.array(
    z.object({
      chain: z.string(),
      class: z.string(),
      calls: z.number(),
      errors: z.number(),
      savedCalls: z.number(),
      units: z.number(),
    }),
  ),
  total: z.object({ calls: z.number(), units: z.number() }),
  nodes: z.array(z.object({ chain: z.string(), caller: z.string(), calls: z.number(), units: z.number() })),
  bill: z.object({ calls: z.number(), units: z.number() }),
});

test("/usage counts clients without keys, and its rows are the bill of the nodes", async (t) => {
  const chains = [createFakeChain({ height: 200 }), createFakeChain({ height: 200, chainId: 31_338 })];
  const nodes = await Promise.all(chains.map((chain) => createFakeNode({ chain })));
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const { url, opsUrl } = await startCommand(t, {
    chains: nodes.map((node, index) => ({ name: ["one", "two"][index] ?? "", nodes: [{ url: node.url }] })),
  });
  for (let count = 0; count < CALLS; count++) {
    const account = `0x${(count % 20).toString(16).padStart(40, "0")}`;
    await rpc(`${url}/one`, "eth_getBalance", [account, "0x1"]);
  }
  await rpc(`${url}/two`, "eth_getBalance", [`0x${"0".repeat(40)}`, "0x1"]);
  for (const chain of chains) {
    chain.mine();
  }
  const read = async () => report.parse(await (await fetch(`${opsUrl}/usage`)).json());
  const { keys, addresses, total } = await read();
  assert.deepEqual(keys, []);
  const [one, two] = addresses.toSorted((a, b) => b.calls - a.calls);
  assert.deepEqual([one?.chain, one?.class, one?.calls, one?.errors], ["one", "loopback", CALLS, 0]);
  assert.equal(one?.units, CALLS * PRICE_OF_BALANCE);
  assert.ok((one?.savedCalls ?? 0) > CALLS / 2);
  assert.deepEqual([two?.chain, two?.calls, total.calls], ["two", 1, CALLS + 1]);

  // Polls go on: the counts are equal at a moment between two of them.
  await until(async () => {
    const before = await metric(opsUrl, "forebay_upstream_calls_total");
    const usage = await read();
    const units = await metric(opsUrl, "forebay_upstream_units_total");
    const counted = nodes.reduce((sum, node) => sum + node.count(), 0);
    const sum = (field: "calls" | "units") => usage.nodes.reduce((total, row) => total + row[field], 0);
    assert.deepEqual([usage.bill.calls, usage.bill.units], [sum("calls"), sum("units")]);
    return usage.bill.calls === before && usage.bill.calls === counted && usage.bill.units === units;
  }, "the rows are the calls and units that the nodes counted");
  const { nodes: rows } = await read();
  for (const chain of ["one", "two"]) {
    for (const caller of ["clients", "forebay"]) {
      assert.ok(
        rows.some((row) => row.chain === chain && row.caller === caller && row.calls > 0),
        `${chain} ${caller}`,
      );
    }
  }
});
