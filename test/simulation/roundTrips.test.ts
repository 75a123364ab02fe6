import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { countedFetch } from "../support/fakes/countedFetch.ts";
import { createSimulationRig } from "../support/fakes/simulationRig.ts";
import { deployProxiedToken } from "../support/servers/proxiedToken.ts";

const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
after(() => anvil.close());
const { block, call } = await deployProxiedToken(anvil);
const params = [{ blockStateCalls: [{ calls: [call] }] }, "latest"];

const CASES = [
  ["with prestateTracer", [], 1],
  ["with eth_createAccessList", ["debug_traceCall"], 2],
  ["with neither", ["debug_traceCall", "eth_createAccessList"], 5],
] as const;

for (const [name, refused, most] of CASES) {
  test(`a first simulation of a proxied token transfer ${name} needs up to ${most} round trips, a second none`, async (context) => {
    const counted = countedFetch(anvil, { refused });
    const rig = createSimulationRig(block, counted.fetch);
    try {
      const first = (await rig.simulate(params)) as [{ calls: [{ status: string; logs: unknown[] }] }];
      const [result] = first[0].calls;
      assert.equal(result.status, "0x1", JSON.stringify(result));
      assert.equal(result.logs.length, 1);
      const cold = counted.roundTrips;
      context.diagnostic(`${cold} round trips of ${counted.calls} calls`);
      assert.ok(cold <= most, `${cold} round trips`);
      assert.deepEqual(await rig.simulate(params), first);
      assert.equal(counted.roundTrips, cold);
    } finally {
      await rig.close();
    }
  });
}
