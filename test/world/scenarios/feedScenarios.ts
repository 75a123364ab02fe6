import type { FeedFaults } from "../../devnet/feedServer.ts";
import type { Flashblock } from "../../devnet/flashblock.ts";
import { MESSAGES_A_BLOCK, type Scenario } from "./scenario.ts";

const FEED_FAULT_MS = 1_000;
const MIN_DELAY_MS = 100;
const MAX_DELAY_MS = 500;

const ofFeed = (name: string, act: (feed: FeedFaults, random: (below: number) => number) => void): Scenario => ({
  name,
  promise: "feedFaults",
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

/** A feed whose messages are lost, late or wrong, and a builder that begins its block anew. */
export const FEED_SCENARIOS: readonly Scenario[] = [
  ofFeed("feed: lost", (feed, random) => feed.drop(1 + random(4))),
  ofFeed("feed: repeated", (feed, random) => feed.repeat(1 + random(4))),
  ofFeed("feed: delayed", (feed, random) =>
    feed.delay(MIN_DELAY_MS + random(MAX_DELAY_MS - MIN_DELAY_MS), 1 + random(4)),
  ),
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
    ...{ name: "feed: restarted on another connection", promise: "feedFaults", needs: "feed", feeds: 2 },
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
];
