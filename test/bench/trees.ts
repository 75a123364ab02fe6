import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startChild } from "./support/child.ts";
import { measure, median, type Server } from "./support/compareServers.ts";
import { cpuSeconds } from "./support/cpuTime.ts";
import { startForebay, THIS_TREE } from "./support/forebay.ts";
import { firstAnswer } from "./support/packed.ts";
import { FORWARDED, type PeerLoad, peerLoads } from "./support/peers/loads.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

/** The first seconds of a load are not counted, because code is being compiled. On a busy machine, they take longer. */
const COMPILE_SECONDS = 1.5;
const SHORT_COMPILE_SECONDS = 0.3;
const SLICE = { warmMs: 200, measureMs: 700 };
const LEFT_OUT = "hit 106 kB";

/** Two processes of this tree, then two of the other: those of one tree show how much equal code differs. */
type Processes = readonly [Server, Server, Server, Server];
/** CPU microseconds of a request, of each process, in a slice of time. */
type Slice = readonly [number, number, number, number];

interface Compared {
  /** Medians of CPU microseconds per request. */
  readonly ours: number;
  readonly theirs: number;
  /** Our CPU by theirs. */
  readonly ratio: number;
  /** How far the ratio of two processes of one tree is from 1, at most. */
  readonly spread: number;
}

const start = async (against: URL, nodePort: number, started: Server[]): Promise<Processes> => {
  const one = async (tree: URL): Promise<Server> => {
    const server = await startForebay(nodePort, tree);
    started.push(server);
    await firstAnswer(server.port);
    return server;
  };
  return [await one(THIS_TREE), await one(THIS_TREE), await one(against), await one(against)];
};

/** Repeats the call of a load until it is a cache hit. */
const untilHit = async ({ port }: Server, { name, shape }: PeerLoad): Promise<void> => {
  const [{ method, params }] = [JSON.parse(shape.body)].flat();
  await until(async () => {
    const { headers } = await rpc(`http://127.0.0.1:${port}`, method, params);
    return headers.get("cache-status")?.startsWith("forebay; hit") === true;
  }, `${name} is cached`);
};

/** Loads the processes in turn, in short slices, so that other work on the machine affects all of them. */
const measureSlices = async (processes: Processes, load: PeerLoad, short: boolean): Promise<Slice[]> => {
  const cpuOf = async (server: Server): Promise<number> =>
    (await measure(server, { ...load.shape, ...SLICE })).cpuMicroseconds;
  for (const server of processes) {
    const used = () => server.pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
    const end = used() + (short ? SHORT_COMPILE_SECONDS : COMPILE_SECONDS);
    await (load.isHit ? untilHit(server, load) : undefined);
    while (used() < end) {
      await cpuOf(server);
    }
  }
  const slices: Slice[] = [];
  for (let index = 0; index < (short ? 1 : 4); index++) {
    const slice: [number, number, number, number] = [0, 0, 0, 0];
    const order = [0, 2, 1, 3] as const;
    for (const at of index % 2 === 0 ? order : order.toReversed()) {
      slice[at] = await cpuOf(processes[at]);
    }
    slices.push(slice);
  }
  return slices;
};

/** `runs` has the slices of each four processes. */
const compare = (runs: readonly (readonly Slice[])[]): Compared => {
  const all = runs.flat();
  const distance = (slices: readonly Slice[], one: 0 | 2): number =>
    Math.abs(median(slices.map((slice) => slice[one] / (slice[one + 1] ?? 1))) - 1);
  return {
    ours: round(median(all.map(([one, other]) => (one + other) / 2)), 1),
    theirs: round(median(all.map(([, , one, other]) => (one + other) / 2)), 1),
    ratio: round(median(all.map(([one, other, third, fourth]) => (one + other) / (third + fourth)))),
    spread: round(Math.max(...runs.flatMap((slices) => [distance(slices, 0), distance(slices, 2)]))),
  };
};

/**
 * Compares the CPU per request of this checkout and of the one in AGAINST, under the loads of `peers` and of a forwarded method.
 * Without AGAINST, this checkout is compared with itself.
 */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const against = process.env.AGAINST === undefined ? THIS_TREE : pathToFileURL(`${resolve(process.env.AGAINST)}/`);
  const node = startChild("verifiedNode.ts");
  const runs = new Map<string, Slice[][]>();
  try {
    const nodePort = Number(await node.message());
    const loads = [...(await peerLoads(nodePort)), FORWARDED].filter(({ name }) => name !== LEFT_OUT);
    for (let count = 0; count < (short ? 1 : 2); count++) {
      const started: Server[] = [];
      try {
        const processes = await start(against, nodePort, started);
        for (const load of loads) {
          const slices = await measureSlices(processes, load, short);
          runs.set(load.name, [...(runs.get(load.name) ?? []), slices]);
        }
      } finally {
        await Promise.all(started.map((server) => server.end()));
      }
    }
  } finally {
    await node.end();
  }
  const compared = [...runs].map(([name, each]) => ({ name, ...compare(each) }));
  const [worst] = compared.toSorted((one, other) => other.ratio - one.ratio);
  console.table(Object.fromEntries(compared.map(({ name, ...values }) => [name, values])));
  return {
    claim: "no load costs more CPU than in the other tree",
    ratio: worst?.ratio ?? 0,
    ours: worst?.ours ?? 0,
    yardstick: worst?.theirs ?? 0,
    unit: `microseconds of CPU per request, ${worst?.name}: the largest ratio, ours to theirs`,
    unreadable: compared.some(({ spread }) => spread > MAX_SPREAD),
    ...Object.fromEntries(compared.map(({ name, ratio, spread }) => [name, `${ratio} (spread ${spread})`])),
  };
};
