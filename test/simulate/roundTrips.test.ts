import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fixedForks } from "../../src/chain/ethereumForks.ts";
import { createNodeState } from "../../src/evm/nodeState.ts";
import { createWorkers } from "../../src/evm/workers.ts";
import { createSimulator, SIMULATE_WORKER, wishOfPayload } from "../../src/simulate/simulator.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { countedFetch } from "../support/countedFetch.ts";
import { deployProxiedToken } from "../support/proxiedToken.ts";

const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
after(() => anvil.close());
const { block, call } = await deployProxiedToken(anvil);
const params = [{ blockStateCalls: [{ calls: [call] }] }, "latest"];
const paramsText = new TextEncoder().encode(JSON.stringify(params));

const CASES = [
  ["with prestateTracer", [], 1],
  ["with eth_createAccessList", ["debug_traceCall"], 2],
  ["with neither", ["debug_traceCall", "eth_createAccessList"], 5],
] as const;

for (const [name, refused, most] of CASES) {
  test(`a proxied token transfer, nothing known, ${name}: at most ${most} round trips, then none`, async (context) => {
    const counted = countedFetch(anvil, { refused });
    const nodeState = createNodeState({ fetch: counted.fetch, maxBytes: 16 * 1024 * 1024 });
    const workers = createWorkers({ entry: SIMULATE_WORKER, size: 1, natives: [] });
    const simulator = createSimulator({
      workers,
      forks: fixedForks(31_337n, "prague"),
      profile: "contract",
      errorShape: "object",
      maxBlocks: 256,
      maxCalls: 5_000,
      gasCap: 50_000_000n,
      timeoutMs: 5_000,
      blockTimeMs: () => 2_000,
    });
    const simulate = async () => {
      const source = nodeState.at(block, wishOfPayload(params));
      const answer = await simulator.simulate(paramsText, { block, source }, new AbortController().signal);
      return JSON.parse(new TextDecoder().decode(answer.body as Uint8Array));
    };
    try {
      const [first] = await simulate();
      assert.equal(first.calls[0].status, "0x1", JSON.stringify(first.calls[0]));
      assert.equal(first.calls[0].logs.length, 1);
      const cold = counted.roundTrips;
      context.diagnostic(`${cold} round trips of ${counted.calls} calls`);
      assert.ok(cold <= most, `${cold} round trips`);
      assert.deepEqual(await simulate(), [first]);
      assert.equal(counted.roundTrips, cold);
    } finally {
      await workers.close();
    }
  });
}
