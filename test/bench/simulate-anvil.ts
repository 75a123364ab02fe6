import { join } from "node:path";
import type { HeaderFields } from "../../src/core/heads.ts";
import { parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { compile } from "../support/builders/compile.ts";
import { countedFetch } from "../support/fakes/countedFetch.ts";
import { createSimulationRig } from "../support/fakes/simulationRig.ts";
import { type Deployed, deploy } from "../support/servers/deployed.ts";
import { cpuSeconds } from "./support/cpuTime.ts";
import { type BenchOptions, type BenchResult, median, round } from "./support/result.ts";

const CLAIM = "Large simulations on known state, against eth_simulateV1 of anvil over loopback";
const BLOCKS = 5;
const TRANSFERS = 20;
/** Calls of a token in a loop, which use 40M gas. */
const LOOPS = 11_500n;
const MAX_RATIO_GAS = 1.01;

/** Measures 5 blocks of 20 transfers (`ratio`), and one call that uses 40M gas. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const anvil = await startAnvil(["--hardfork", "prague", "--no-mining", "--gas-limit", "60000000"]);
  try {
    const contracts = compile(join(import.meta.dirname, "Loops.sol"), "prague");
    const placed = await deploy(anvil, contracts, [
      ["Token", "Token", () => []],
      ["Loops", "Loops", () => []],
    ]);
    await placed.send(placed.address("Token"), placed.encode("Token", "mint", [placed.sender, 10n ** 18n]));
    const block = parseBaseBlock((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields);
    const rig = createSimulationRig(block, countedFetch(anvil).fetch);
    const measure = async (params: readonly unknown[], runs: number): Promise<Compared> => {
      const [ours, anvils]: [number[], number[]] = [[], []];
      checkSame(await rig.simulate(params), await anvil.call("eth_simulateV1", ...params));
      const anvilCpu = cpuSeconds(anvil.pid ?? 0);
      let cpu = 0;
      for (let run = 0; run < runs; run++) {
        const { user, system } = process.cpuUsage();
        ours.push(await timed(() => rig.simulate(params)));
        const after = process.cpuUsage({ user, system });
        cpu += (after.user + after.system) / 1e6;
        anvils.push(await timed(() => anvil.call("eth_simulateV1", ...params)));
      }
      const cpuRatio = round((cpuSeconds(anvil.pid ?? 0) - anvilCpu) / cpu);
      return { ours: round(median(ours)), anvil: round(median(anvils)), cpuRatio };
    };
    const blocks = await measure(transferBlocks(placed), short ? 100 : 500);
    const gas = await measure(loop(placed), short ? 5 : 20);
    await rig.close();
    return {
      claim: CLAIM,
      ratio: round(blocks.anvil / blocks.ours),
      ours: blocks.ours,
      yardstick: blocks.anvil,
      unit: "ms",
      cpuRatio: blocks.cpuRatio,
      gasRatio: round(gas.anvil / gas.ours),
      gasMs: gas.ours,
      gasAnvilMs: gas.anvil,
      gasCpuRatio: gas.cpuRatio,
    };
  } finally {
    await anvil.close();
  }
};

interface Compared {
  readonly ours: number;
  readonly anvil: number;
  /** CPU of anvil, by that of this process with its workers. */
  readonly cpuRatio: number;
}

const addressOf = (number: number): string => `0x${number.toString(16).padStart(40, "0")}`;

const transferBlocks = (placed: Deployed): readonly unknown[] => {
  const { sender } = placed;
  const transfer = (at: number) => ({
    from: sender,
    to: placed.address("Token"),
    data: placed.encode("Token", "transfer", [addressOf(0x5000 + at), 1n]),
  });
  const blockStateCalls = Array.from({ length: BLOCKS }, (_, block) => ({
    calls: Array.from({ length: TRANSFERS }, (_, at) => transfer(block * TRANSFERS + at)),
  }));
  return [{ blockStateCalls }, "latest"];
};

const loop = (placed: Deployed): readonly unknown[] => {
  const data = placed.encode("Loops", "calls", [LOOPS]);
  return [{ blockStateCalls: [{ calls: [{ from: placed.sender, to: placed.address("Loops"), data }] }] }, "latest"];
};

interface Simulated {
  readonly gasUsed: string;
  readonly calls: readonly { readonly status: string }[];
}

/** Both must have done the same work. */
const checkSame = (ours: unknown, anvils: unknown): void => {
  const [mine, theirs] = [ours as Simulated[], anvils as Simulated[]];
  const isOk = [...mine, ...theirs].every(({ calls }) => calls.every(({ status }) => status === "0x1"));
  const gas = (blocks: readonly Simulated[]) => blocks.reduce((sum, { gasUsed }) => sum + Number(gasUsed), 0);
  if (!isOk || mine.length !== theirs.length || gas(mine) / gas(theirs) > MAX_RATIO_GAS) {
    throw new Error(`the simulations differ: ${gas(mine)} and ${gas(theirs)} gas`);
  }
};

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await run();
  return performance.now() - start;
};
