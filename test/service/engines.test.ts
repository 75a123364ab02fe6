import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { deployProxiedToken } from "../support/servers/proxiedToken.ts";
import { createService } from "../support/servers/service.ts";

const COMPARED = "forebay_simulate_compared_total";

test("with auto, runs are compared with the reference engine; with reference, the library gives the same answer", async (t) => {
  const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
  t.after(() => anvil.close());
  const { block, call } = await deployProxiedToken(anvil);
  const params = [{ blockStateCalls: [{ calls: [call, call] }] }, `0x${block.number.toString(16)}`];
  const start = async (options: { readonly engine?: "auto" | "reference"; readonly compareShare?: number }) => {
    // The reference engine is slow to start. A run that ends at its deadline is not compared.
    const simulate = { timeoutMs: 60_000, ...options };
    const chain = { nodes: [{ url: anvil.url }], blockTimeMs: 1_000, forks: "prague" as const, simulate };
    const service = await createService(chain);
    t.after(() => service.close());
    return service;
  };

  const auto = await start({ compareShare: 1 });
  const answer = await rpc(auto.url, "eth_simulateV1", params);
  assert.equal(answer.body.error, undefined, answer.text);
  assert.equal(answer.headers.get("cache-status"), "forebay; hit; detail=local");
  await until(async () => (await metric(auto.opsUrl, COMPARED)) > 0, "a run was compared");
  assert.equal(await metric(auto.opsUrl, COMPARED, 'outcome="same"'), 1);

  const reference = await start({ engine: "reference", compareShare: 1 });
  const other = await rpc(reference.url, "eth_simulateV1", params);
  assert.equal(other.headers.get("cache-status"), "forebay; hit; detail=local");
  assert.deepEqual(other.body, answer.body);
  assert.equal(await metric(reference.opsUrl, COMPARED), 0);
});
