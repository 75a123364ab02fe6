import { startAnvil } from "../devnet/anvil.ts";
import { countedFetch } from "../support/fakes/countedFetch.ts";
import { createSimulationRig } from "../support/fakes/simulationRig.ts";
import { deployProxiedToken } from "../support/servers/proxiedToken.ts";
import { median, quantile, round } from "./support/result.ts";

const CLAIM =
  "A proxied token transfer simulated again on the same block, against the same call sent to anvil over loopback";

export const bench = async ({ short }: { readonly short: boolean }) => {
  const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
  try {
    const { block, call } = await deployProxiedToken(anvil);
    const params = [{ blockStateCalls: [{ calls: [call] }] }, "latest"];
    const counted = countedFetch(anvil);
    const rig = createSimulationRig(block, counted.fetch);
    const runs = short ? 50 : 1_000;
    const ours: number[] = [];
    const calls: number[] = [];
    const yardstick: number[] = [];
    for (let run = 0; run < runs / 2; run++) {
      await rig.simulate(params);
      await rig.call([call, "latest"]);
    }
    const known = counted.roundTrips;
    for (let run = 0; run < runs; run++) {
      ours.push(await timed(() => rig.simulate(params)));
      calls.push(await timed(() => rig.call([call, "latest"])));
      yardstick.push(await timed(() => anvil.call("eth_call", call, "latest")));
    }
    await rig.close();
    const [mine, theirs] = [median(ours), median(yardstick)];
    return {
      claim: CLAIM,
      ratio: round(theirs / mine),
      ours: round(mine),
      yardstick: round(theirs),
      unit: "ms",
      callRatio: round(theirs / median(calls)),
      callMs: round(median(calls)),
      p99Ms: round(quantile(ours, 0.99)),
      roundTrips: counted.roundTrips - known,
    };
  } finally {
    await anvil.close();
  }
};

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await run();
  return performance.now() - start;
};
