import type { HeaderFields } from "../../src/core/heads.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { type BaseBlock, parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { countedFetch } from "../support/fakes/countedFetch.ts";
import { createSimulationRig } from "../support/fakes/simulationRig.ts";
import { deployProxiedToken } from "../support/servers/proxiedToken.ts";
import { median, round } from "./support/result.ts";

const CLAIM = "A proxied token transfer on state that has to be fetched, 20 ms away, against one request a field";
const LATENCY_MS = 20;
const WARM_UP = 5;

/** Methods that a node may not support, by the name of the case. */
const CASES = [
  ["prestateTracer", []],
  ["accessList", ["debug_traceCall"]],
  ["neither", ["debug_traceCall", "eth_createAccessList"]],
] as const;

export const bench = async ({ short }: { readonly short: boolean }) => {
  const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
  try {
    const { block, call } = await deployProxiedToken(anvil);
    const params = [{ blockStateCalls: [{ calls: [call] }] }, "latest"];
    const runs = short ? 2 : 9;

    const oneByOne: number[] = [];
    const prestate = (await anvil.call("debug_traceCall", call, "latest", { tracer: "prestateTracer" })) as Prestate;
    for (let run = 0; run < runs; run++) {
      oneByOne.push(await fetchOneByOne(anvil, prestate));
    }

    const measured: Record<string, number> = {};
    for (const [name, refused] of CASES) {
      const counted = countedFetch(anvil, { refused, latencyMs: LATENCY_MS });
      const rig = createSimulationRig(block, counted.fetch);
      const times: number[] = [];
      for (let run = 0; run < runs + WARM_UP; run++) {
        // No state of a new block is cached. The threads are warm, as in production.
        const bypassCache = await mineBlock(anvil);
        const before = counted.roundTrips;
        const start = performance.now();
        await rig.simulate(params, bypassCache);
        if (run >= WARM_UP) {
          times.push(performance.now() - start);
        }
        measured[`${name}RoundTrips`] = counted.roundTrips - before;
      }
      await rig.close();
      measured[`${name}Ms`] = round(median(times));
    }
    const [ours, yardstick] = [measured.accessListMs ?? 0, round(median(oneByOne))];
    return { claim: CLAIM, ratio: round(yardstick / ours), ours, yardstick, unit: "ms", ...measured };
  } finally {
    await anvil.close();
  }
};

const mineBlock = async (anvil: Anvil): Promise<BaseBlock> => {
  await anvil.call("evm_mine");
  return parseBaseBlock((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields);
};

type Prestate = Readonly<Record<string, { readonly storage?: Readonly<Record<string, string>> }>>;

/** Fetches the state that the transfer reads like a client without batches. */
const fetchOneByOne = async (anvil: Anvil, prestate: Prestate): Promise<number> => {
  const { fetch } = countedFetch(anvil, { latencyMs: LATENCY_MS });
  const start = performance.now();
  for (const [address, { storage = {} }] of Object.entries(prestate)) {
    for (const method of ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"]) {
      await fetch([createCall(method, [address, "latest"])]);
    }
    for (const slot of Object.keys(storage)) {
      await fetch([createCall("eth_getStorageAt", [address, slot, "latest"])]);
    }
  }
  return performance.now() - start;
};
