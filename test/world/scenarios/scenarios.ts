import type { FeedFaults } from "../../devnet/feedServer.ts";
import type { Flashblock } from "../../devnet/flashblock.ts";
import type { Lie } from "../../support/fakes/lyingNode.ts";
import {
  differingMachines,
  htmlPage,
  LIES,
  lagging,
  pruned,
  quotaExceeded,
  REFUND_LIES,
  refusing,
  refusingRanges,
  sawtooth,
} from "../nodes/nodeFaults.ts";
import type { NodeFault } from "../nodes/truthNode.ts";
import { type ActingWorld, MESSAGES_A_BLOCK, PAUSED_REDIS, type Scenario } from "./scenario.ts";

const MAX_REORG = 20;
/** All nodes have the new branch at the same time. */
const MAX_QUICK_REORG = 8;
const REORG_MS = 3_500;
const LIE_MS = 1_500;
const FEED_FAULT_MS = 1_000;
const RESTART_MS = 20_000;
const CLOCK_MS = 2_500;
const PAUSED_REDIS_MS = 1_500;
const MIN_SLOW_MS = 50;
const SLOW_MS = 400;
const MAX_RANGES = [60, 8, 20] as const;

const KEPT_BLOCKS = 12;
/** Of geth and Erigon. */
const PRUNED_ERRORS = [
  { code: 4444, message: "pruned history unavailable" },
  { code: -32_000, message: "old data not available due to pruning" },
] as const;

/** The second of three nodes has the fault. The other two are honest. */
const ofNode = (name: string, faultOf: (world: ActingWorld) => NodeFault): Scenario => ({
  name,
  begin: (world) => {
    const [, node] = world.nodes;
    if (node !== undefined) {
      node.fault = faultOf(world);
    }
  },
});

/** The second of three nodes tells one lie after the other. */
const tell = (lies: readonly Lie[], { nodes: [, node], repeat }: ActingWorld): void => {
  let count = 0;
  repeat(LIE_MS, () => {
    const lie = lies[count++ % lies.length];
    if (node !== undefined && lie !== undefined) {
      node.fault = { lies: [lie] };
    }
  });
};

const ofLies = (name: string): Scenario => ({
  name: `lies: ${name}`,
  begin: (world) => tell(LIES[name] ?? [], world),
});

const ofFeed = (name: string, act: (feed: FeedFaults, random: (below: number) => number) => void): Scenario => ({
  name,
  needs: "feed",
  begin: ({ feed, random, repeat }) => repeat(FEED_FAULT_MS, () => act(feed, random)),
});

/** Changes the next message with this index. */
const inNextBlock = (feed: FeedFaults, index: number, change: (message: Flashblock) => Flashblock): void => {
  for (let count = 0; count < MESSAGES_A_BLOCK; count++) {
    feed.alter((message) => (message.index === index ? change(message) : message));
  }
};

const WRONG_ROOT = `0x${"be".repeat(32)}` as const;

/** An attempt at a block with an equal index 0 and an empty message, which the builder abandons. */
const abandonedAttempt = ({ base, ...first }: Flashblock): readonly Flashblock[] => {
  const attempt = { ...first, payload_id: `0xab${first.payload_id.slice(4)}` } as const;
  const empty = { ...attempt, index: 1, diff: { ...attempt.diff, transactions: [] } };
  return [{ ...attempt, ...(base && { base }) }, empty];
};

/** Honest nodes learn of a head at different times, as nodes of several operators do. */
const LATE_MS = [0, 250, 500] as const;
const makeLate = ({ nodes }: ActingWorld): void => {
  for (const [index, node] of nodes.entries()) {
    node.fault = { lateMs: LATE_MS[index % LATE_MS.length] ?? 0 };
  }
};

/** Nothing fails. */
const HONEST = (): void => undefined;

/** These lies can stay in a cache, and would count in the scenarios after them. */
const LAST: readonly string[] = ["logs", "receipts"];

/** In the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  { name: "honest", isPrompt: true, begin: HONEST },
  { name: "late nodes", begin: makeLate },
  ofNode("lag of 1 block", () => lagging(1)),
  ofNode("lag of 5 blocks", () => lagging(5)),
  ofNode("lag of 50 blocks", () => lagging(50)),
  ofNode("sawtooth", sawtooth),
  ofNode("machines that differ", ({ random }) => differingMachines(random)),
  {
    name: "machines of each node",
    begin: ({ nodes, random }) => {
      for (const node of nodes) {
        node.fault = differingMachines(random);
      }
    },
  },
  {
    name: "pruned nodes",
    begin: ({ chain, nodes }) => {
      for (const [index, error] of PRUNED_ERRORS.entries()) {
        const node = nodes[index];
        if (node !== undefined) {
          node.fault = pruned(chain, KEPT_BLOCKS, error);
        }
      }
    },
  },
  ofNode("hang", () => ({ body: "hang" })),
  ofNode("429", () => refusing(429)),
  ofNode("503", () => refusing(503)),
  ofNode("quota", () => quotaExceeded),
  ofNode("HTML", () => htmlPage),
  ofNode("half a body", () => ({ body: "cut" })),
  ...Object.keys(LIES)
    .filter((name) => !LAST.includes(name))
    .map(ofLies),
  {
    name: "reorganisations",
    begin: (world) => {
      const { chain, change, random, repeat } = world;
      makeLate(world);
      repeat(REORG_MS, async () => {
        const depth = 1 + random(MAX_REORG);
        const endFault = chain.lagBound.beginFault();
        await change(() => chain.reorg(depth, depth + random(2)));
        endFault();
      });
    },
  },
  {
    name: "reorganisations at once",
    isPrompt: true,
    begin: ({ chain, change, random, repeat }) => {
      repeat(REORG_MS, () => {
        const depth = random(2) === 0 ? 1 : 1 + random(MAX_QUICK_REORG);
        return change(() => chain.reorg(depth, depth === 1 ? 1 : depth + random(2)));
      });
    },
  },
  {
    name: "refunds",
    begin: (world) => {
      world.chain.givesBack = true;
      tell(REFUND_LIES, world);
      world.atEnd(() => {
        world.chain.givesBack = false;
      });
    },
  },
  ofNode("another chain", ({ other }) => ({ chain: other })),
  {
    name: "log ranges",
    begin: ({ chain, nodes }) => {
      for (const [index, node] of nodes.entries()) {
        node.fault = refusingRanges(chain, MAX_RANGES[index % MAX_RANGES.length] ?? 1);
      }
    },
  },
  {
    name: "restart",
    needs: "restart",
    begin: ({ proxy, replicas, random, repeat }) => repeat(RESTART_MS, () => proxy.restart(random(replicas))),
  },
  {
    name: "slow network",
    begin: ({ chain, nodes, random, atEnd }) => {
      const node = nodes[random(nodes.length)];
      atEnd(chain.lagBound.beginFault());
      if (node !== undefined) {
        node.delayMs = MIN_SLOW_MS + random(SLOW_MS);
      }
    },
  },
  {
    name: "clock jump",
    needs: "clock",
    begin: ({ chain, proxy, replicas, random, repeat, atEnd }) => {
      atEnd(chain.lagBound.beginFault());
      repeat(CLOCK_MS, () => proxy.jumpClock?.(random(replicas)));
    },
  },
  {
    name: PAUSED_REDIS,
    needs: "redis",
    begin: ({ chain, proxy, repeat, atEnd }) => {
      atEnd(chain.lagBound.beginFault());
      let count = 0;
      repeat(PAUSED_REDIS_MS, () => proxy.pauseRedis?.(count++ % 2 === 0));
      atEnd(() => proxy.pauseRedis?.(false));
    },
  },
  { name: "two replicas", needs: "replicas", isPrompt: true, begin: HONEST },
  ofFeed("feed: lost", (feed, random) => feed.drop(1 + random(4))),
  ofFeed("feed: repeated", (feed, random) => feed.repeat(1 + random(4))),
  ofFeed("feed: delayed", (feed, random) => feed.delay(100 + random(SLOW_MS), 1 + random(4))),
  ofFeed("feed: broken", (feed) => {
    feed.inject("{");
    feed.disconnect();
  }),
  ofFeed("feed: corrupt", (feed) => {
    feed.alter((message) => ({ ...message, diff: { ...message.diff, gas_used: "0x1" } }));
    feed.inject("{");
  }),
  ofFeed("feed: restarted", (feed) =>
    inNextBlock(feed, 0, (message) => {
      for (const frame of abandonedAttempt(message)) {
        feed.inject(JSON.stringify(frame));
      }
      return message;
    }),
  ),
  {
    ...{ name: "feed: restarted on another connection", needs: "feed", feeds: 2 },
    begin: ({ feed, otherFeed, random, repeat }) =>
      repeat(FEED_FAULT_MS, () =>
        inNextBlock(feed, 0, (message) => {
          const abandon = (): void => {
            for (const frame of abandonedAttempt(message)) {
              otherFeed.inject(JSON.stringify(frame));
            }
          };
          // Before or after the message of the first connection.
          random(2) === 0 ? abandon() : queueMicrotask(abandon);
          return message;
        }),
      ),
  },
  ofFeed("feed: corrupt last message", (feed) =>
    inNextBlock(feed, MESSAGES_A_BLOCK - 1, ({ diff, ...message }) => ({
      ...message,
      diff: { ...diff, receipts_root: WRONG_ROOT },
    })),
  ),
  ...LAST.map(ofLies),
];
