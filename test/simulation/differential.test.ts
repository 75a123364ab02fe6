import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { HeaderFields } from "../../src/core/heads.ts";
import { parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { createCallWorld, type PlainCall } from "../support/builders/callWorld.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { countedFetch } from "../support/fakes/countedFetch.ts";
import { createSimulationRig } from "../support/fakes/simulationRig.ts";

const PAYLOADS = 40;
const BLOCKS = 3;
const CALLS = 4;
const SEED = 611_953;
const GAS = "0x200000";

const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
const world = await createCallWorld(anvil, "prague");
const block = parseBaseBlock((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields);
const rig = createSimulationRig(block, countedFetch(anvil).fetch);
after(async () => {
  await rig.close();
  await anvil.close();
});

interface Result {
  readonly calls: readonly {
    readonly status: string;
    readonly gasUsed: string;
    readonly returnData: string;
    readonly logs: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[];
  }[];
}

/** The fields that are equal in both: anvil 1.7 has its own headers, and another field for a revert's bytes. */
const comparable = (results: unknown) =>
  (results as readonly Result[]).map(({ calls }) =>
    calls.map(({ status, gasUsed, returnData, logs }) => ({
      status,
      gasUsed,
      returnData: status === "0x1" ? returnData : "",
      logs: logs.map(({ address, topics, data }) => [address.toLowerCase(), topics, data]),
    })),
  );

/** Creates calls that do not read the block, because the headers of the two differ. */
const randomCalls = (random: () => number): PlainCall[] => {
  const calls: PlainCall[] = [];
  while (calls.length < CALLS) {
    const call = world.randomCall(random);
    if (!world.showsBlock(call)) {
      calls.push(call);
    }
  }
  return calls;
};

test(`${PAYLOADS} random payloads of ${BLOCKS} blocks: each call runs on the state of earlier calls, with anvil's results`, async () => {
  const random = createRandom(SEED);
  const differing: string[] = [];
  for (let at = 0; at < PAYLOADS; at++) {
    const blockStateCalls = Array.from({ length: BLOCKS }, (_, number) => ({
      // The two have different default times.
      blockOverrides: { time: `0x${(block.timestamp + BigInt(number + 1) * 5n).toString(16)}` },
      calls: randomCalls(random).map((call) => ({ ...call, gas: GAS })),
    }));
    const params = [{ blockStateCalls }, "latest"];
    const [ours, theirs] = [
      comparable(await rig.simulate(params)),
      comparable(await anvil.call("eth_simulateV1", ...params)),
    ];
    for (const [blockAt, calls] of ours.entries()) {
      for (const [callAt, call] of calls.entries()) {
        const other = theirs[blockAt]?.[callAt];
        if (JSON.stringify(call) === JSON.stringify(other)) {
          continue;
        }
        const request = JSON.stringify(blockStateCalls[blockAt]?.calls[callAt]).slice(0, 300);
        differing.push(
          `${at} ${blockAt} ${callAt} ${request} ours ${JSON.stringify(call)} theirs ${JSON.stringify(other)}`,
        );
      }
    }
  }
  assert.deepEqual(differing, []);
});
