import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf } from "../support/builders/stateModel.ts";
import { callOverNewConnection } from "../support/clients/freshConnection.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";

test("serving processes read known state as soon as it is followed, before the next block", async (t) => {
  const version = Promise.withResolvers<string>();
  const node = await createFakeNode({ handlers: { web3_clientVersion: () => version.promise } });
  t.after(() => node.close());
  const forebay = await startProcesses(t, { chains: [{ name: "chain", nodes: [{ url: node.url }] }] });
  const lookups = () => metric(forebay.opsUrl, "forebay_state_lookups_total", 'method="eth_getBalance"');
  let account = 0;
  const read = () => callOverNewConnection(forebay.url, "eth_getBalance", [addressOf(account++), "latest"]);

  await read();
  assert.equal(await lookups(), 0);
  version.resolve("Geth/v1.16.0");
  await until(async () => {
    await read();
    return (await lookups()) > 0;
  }, "reads are looked up");
});
