import { LRUCache } from "lru-cache";
import { exceeded, type RateLimits } from "../access/rateLimits.ts";
import type { Places } from "../limits/places.ts";
import type { MainChannel } from "./chainCopy.ts";

/** Clients above their limit that are remembered. */
const MAX_BLOCKED = 10_000;

/** Counts calls in the main process. A client above its limit causes no more messages until its window ends. */
export const createRemoteRates = (main: MainChannel): Pick<RateLimits, "take"> => {
  const blockedUntilMs = new LRUCache<string, number>({ max: MAX_BLOCKED });
  return {
    take: async (by, id, limit, calls = 1) => {
      const name = `${by}:${limit.calls}/${limit.seconds}:${id}`;
      const blockedMs = (blockedUntilMs.get(name) ?? 0) - performance.now();
      if (blockedMs > 0) {
        throw exceeded(limit, blockedMs);
      }
      const waitMs = await main.call("countCalls", { by, id, limit, calls });
      if (waitMs !== undefined) {
        blockedUntilMs.set(name, performance.now() + waitMs);
        throw exceeded(limit, waitMs);
      }
    },
  };
};

/** Counts places in the main process. */
export const createRemotePlaces = (main: MainChannel): Places => ({
  take: (places) => main.call("takePlaces", places),
  release: (names) => main.notify("releasePlaces", names),
});
