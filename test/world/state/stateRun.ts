import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import type { chainSchema } from "../../../src/config/chainSchema.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { createService, type Service } from "../../support/servers/service.ts";
import { withLifespan } from "../../support/servers/withLifespan.ts";
import { startWorldNode, type WorldNode } from "../nodes/worldNode.ts";
import type { StandInVariant } from "./standInVariants.ts";
import { createStateChain, drive, type StateChain } from "./stateChain.ts";

/** A service in front of one node with random state. */
export interface StateWorld extends StateChain {
  readonly node: WorldNode;
  readonly service: Service;
}

/** Compares answers with the record until the signal aborts. */
export interface StateJudge {
  readonly tally: { readonly comparisons: number };
  run(signal: AbortSignal): Promise<void>;
}

export interface StateRun<Result> {
  /** Each is a client. One judge can be several clients. */
  readonly clients: readonly StateJudge[];
  /** Whether the run has found what it looks for, or has run long enough. It is not asked in a run of steps. */
  isOver(leftMs: number): Promise<boolean>;
  report(): Promise<Result>;
}

export interface StateRunOptions<Result> {
  readonly variant: StandInVariant;
  readonly seed: number;
  /** Blocks before the service starts. */
  readonly length: number;
  readonly seconds: number;
  /** The run ends after this number of blocks and reorganisations that the service serves instead. */
  readonly steps: number | undefined;
  readonly state: z.input<typeof chainSchema>["state"];
  begin(world: StateWorld): Promise<StateRun<Result>>;
}

const BLOCK_MS = 250;
const CHECK_MS = 200;
const STEP_CHECK_MS = 10;

/** Waits until the service serves the newest block, and until each judge has compared an answer after that. */
const comparedStep = async ({ chain, service }: StateWorld, judges: Iterable<StateJudge>, signal: AbortSignal) => {
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo() && !signal.aborted) {
      await sleep(STEP_CHECK_MS);
    }
  };
  await until(() => service.chains[0]?.upstreams.heads.current()?.latest.hash === chain.head.hash);
  for (const { tally } of judges) {
    const { comparisons } = tally;
    await until(() => tally.comparisons > comparisons);
  }
};

const startStateWorld = async (
  t: Lifespan,
  { variant, seed, length, state }: Omit<StateRunOptions<unknown>, "begin">,
): Promise<StateWorld> => {
  const { fork, traces, pushes, refunds } = variant;
  const { chain, blocks } = await createStateChain({ fork, seed, length, refunds });
  const node = await startWorldNode(t, chain, { traces });
  const service = await createService({
    nodes: [{ url: node.url, ...(pushes && { wsUrl: node.wsUrl }) }],
    blockTimeMs: BLOCK_MS,
    forks: fork,
    ...(state && { state }),
  });
  t.after(() => service.close());
  return { chain, blocks, node, service };
};

/** Runs judges in a world whose blocks arrive and are replaced. */
export const runStateWorld = <Result>(options: StateRunOptions<Result>) =>
  withLifespan(async (t) => {
    const { seed, length, seconds, steps } = options;
    const world = await startStateWorld(t, options);
    const { chain } = world;
    const ending = new AbortController();
    const { signal } = ending;
    t.after(() => ending.abort());
    const { clients, isOver, report } = await options.begin(world);
    const judges = new Set(clients);
    const stepped = async (): Promise<void> => (steps === undefined ? undefined : comparedStep(world, judges, signal));
    const driving = drive(world, { seed, blockMs: BLOCK_MS, steps, stepped }, signal);
    const running = clients.map((client) => client.run(signal));
    const endMs = performance.now() + seconds * 1_000;
    await (steps === undefined ? undefined : driving);
    while (steps === undefined && !(await isOver(endMs - performance.now()))) {
      await sleep(CHECK_MS);
    }
    ending.abort();
    const [reorganisations] = await Promise.all([driving, ...running]);
    return { ...(await report()), blocks: chain.height - length, reorganisations };
  });
