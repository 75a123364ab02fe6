import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandom } from "../support/builders/randomValues.ts";
import { metric } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createService } from "../support/servers/service.ts";
import { ComparedReads } from "../world/judge/comparedReads.ts";
import { createCallReads } from "../world/judge/randomCalls.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { compareSteps, createStateChain } from "../world/state/stateChain.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const STEPS = 60;
const SEED = 7;
/** Write sets cost little, so that they are read. */
const UNITS = { debug_traceBlockByHash: 1, eth_getBlockByHash: 0 };

for (const { name, fork, options, source } of [
  { name: "a trace", fork: "prague", options: { traces: "geth" }, source: "trace" },
  { name: "a block access list", fork: "amsterdam", options: {}, source: "accessList" },
] as const) {
  test(`random calls through reorganisations are those of the node at the same hash, with ${name}`, async (t) => {
    const world = await createStateChain({ fork, seed: SEED, length: 40 });
    const { chain } = world;
    const node = await startWorldNode(t, chain, options);
    const service = await createService({
      nodes: [{ url: node.url }],
      blockTimeMs: LONG_MS,
      forks: fork,
      state: { waitMs: LONG_MS, source, units: UNITS },
    });
    t.after(() => service.close());
    const compared = new ComparedReads(chain, service, createCallReads(chain, createRandom(11)), 11);
    const events = (event: string) => metric(service.opsUrl, "forebay_state_answers_total", `event="${event}"`);
    await until(async () => {
      await compareSteps(world, { service, judge: compared, steps: STEPS, reorganisedEvery: 8 });
      const { differences, comparisons } = compared.tally;
      assert.deepEqual(differences, []);
      const [reused, recomputed] = [await events("reused"), await events("recomputed")];
      t.diagnostic(`${comparisons} comparisons, ${reused} reused, ${recomputed} recomputed`);
      return reused > 0 && recomputed > 0;
    }, "calls are learned in the background, and answered from what was learned");
  });
}
