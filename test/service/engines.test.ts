import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { rpc } from "../support/clients/rpc.ts";
import { deployProxiedToken } from "../support/servers/proxiedToken.ts";
import { createService } from "../support/servers/service.ts";

test("the reference engine gives the same answer as the default", async (t) => {
  const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
  t.after(() => anvil.close());
  const { block, call } = await deployProxiedToken(anvil);
  const params = [{ blockStateCalls: [{ calls: [call, call] }] }, `0x${block.number.toString(16)}`];
  const simulate = async (engine?: "reference") => {
    // The reference engine is slow to start.
    const options = { timeoutMs: 60_000, engine };
    const chain = { nodes: [{ url: anvil.url }], blockTimeMs: 1_000, forks: "prague" as const, simulate: options };
    const service = await createService(chain);
    t.after(() => service.close());
    const answer = await rpc(service.url, "eth_simulateV1", params);
    assert.equal(answer.headers.get("cache-status"), "forebay; hit; detail=local");
    return answer;
  };

  const fast = await simulate();
  assert.equal(fast.body.error, undefined, fast.text);
  const reference = await simulate("reference");
  assert.deepEqual(reference.body, fast.body);
});
