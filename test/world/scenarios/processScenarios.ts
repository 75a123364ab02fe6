import { PAUSED_REDIS, type Scenario } from "./scenario.ts";

const RESTART_MS = 20_000;
const CLOCK_MS = 2_500;
const PAUSED_REDIS_MS = 1_500;

/** Faults of the proxy's own processes and their Redis. */
export const PROCESS_SCENARIOS: readonly Scenario[] = [
  {
    name: "restart",
    promise: "faults",
    needs: "restart",
    begin: ({ proxy, replicas, random, repeat }) => repeat(RESTART_MS, () => proxy.restart(random(replicas))),
  },
  {
    name: "clock jump",
    promise: "faults",
    needs: "clock",
    begin: ({ chain, proxy, replicas, random, repeat, atEnd }) => {
      atEnd(chain.lagBound.beginFault());
      repeat(CLOCK_MS, () => proxy.jumpClock?.(random(replicas)));
    },
  },
  {
    name: PAUSED_REDIS,
    promise: "faults",
    needs: "redis",
    begin: ({ chain, proxy, repeat, atEnd }) => {
      atEnd(chain.lagBound.beginFault());
      let count = 0;
      repeat(PAUSED_REDIS_MS, () => proxy.pauseRedis?.(count++ % 2 === 0));
      atEnd(() => proxy.pauseRedis?.(false));
    },
  },
  { name: "two replicas", promise: "replicas", needs: "replicas", isPrompt: true, begin: () => undefined },
];
