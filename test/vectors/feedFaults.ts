import { MESSAGES_OF_BLOCK } from "./playBuilder.ts";

/** A frame of the recorded feed, sent by one of the feeds. */
export interface SentFrame {
  readonly atMs: number;
  readonly feed: number;
  readonly number: number;
  readonly index: number;
  readonly text: string;
}

/** A change of the node. Without `head`, its head becomes a sibling of the current one. */
export interface NodeEvent {
  readonly atMs: number;
  readonly act: "seal" | "replace" | "return" | "down" | "up";
  readonly number: number;
}

export interface FeedEvent {
  readonly atMs: number;
  readonly act: "disconnect" | "close" | "open";
}

/** The events of one run, in front of one chain of the service. */
export interface Scenario {
  readonly name: string;
  readonly feeds: number;
  readonly frames: readonly SentFrame[];
  readonly node: readonly NodeEvent[];
  readonly feedEvents: readonly FeedEvent[];
  /** The head is replaced, so that logs of pending blocks are removed, and pending goes back. */
  readonly isReorganised: boolean;
  /** Transactions of this block must be shown before it is sealed, from its second message on. */
  readonly mustShow?: number;
}

export interface Plan {
  /** The recorded frames at their times. */
  readonly frames: readonly SentFrame[];
  /** When the node has each block. */
  readonly heads: ReadonlyMap<number, number>;
}

/** The block whose messages are changed: two blocks before it have shown that the hashes are true. */
const FAULTY = 431;
const WRONG_ROOT = `0x${"be".repeat(32)}`;
const ZERO = `0x${"00".repeat(32)}`;

interface WireMessage {
  payload_id: string;
  index: number;
  base?: unknown;
  diff: { transactions: string[]; receipts_root: string; block_hash: string; gas_used: string };
}

const altered = (frame: SentFrame, change: (message: WireMessage) => void): SentFrame => {
  const message: WireMessage = JSON.parse(frame.text);
  change(message);
  return { ...frame, text: JSON.stringify(message) };
};

const isAt = (index: number) => (frame: SentFrame) => frame.number === FAULTY && frame.index === index;

type Fault = (frames: readonly SentFrame[], index: number) => readonly SentFrame[];

/** Replaces the frame at an index of the faulty block by others. */
const replaced =
  (change: (frame: SentFrame) => readonly SentFrame[]): Fault =>
  (frames, index) =>
    frames.flatMap((frame) => (isAt(index)(frame) ? change(frame) : [frame]));

const delayed = (delayMs: number): Fault => replaced((frame) => [{ ...frame, atMs: frame.atMs + delayMs }]);

const swapped: Fault = (frames, index) => {
  const at = frames.findIndex(isAt(index));
  const one = frames[at];
  const next = frames[at + 1];
  return one && next ? frames.with(at, { ...next, atMs: one.atMs }).with(at + 1, { ...one, atMs: next.atMs }) : frames;
};

const withoutHashes: Fault = (frames) =>
  frames.map((frame) =>
    altered(frame, ({ diff }) => {
      diff.block_hash = ZERO;
    }),
  );

const wrongRoot = replaced((frame) => [
  altered(frame, ({ diff }) => {
    diff.receipts_root = WRONG_ROOT;
  }),
]);
const oneLess = replaced((frame) => [altered(frame, ({ diff }) => diff.transactions.pop())]);
const wrongGas = replaced((frame) => [
  altered(frame, ({ diff }) => {
    diff.gas_used = "0x1";
  }),
]);

const FAULTS: Readonly<Record<string, Fault>> = {
  dropped: replaced(() => []),
  doubled: replaced((frame) => [frame, { ...frame, atMs: frame.atMs + 2 }]),
  reordered: swapped,
  "late by 300 ms": delayed(300),
  "late by 2 s": delayed(2_000),
  truncated: replaced((frame) => [{ ...frame, text: frame.text.slice(0, frame.text.length / 2) }]),
  "wrong index": replaced((frame) => [
    altered(frame, (message) => {
      message.index = (message.index + 2) % MESSAGES_OF_BLOCK;
    }),
  ]),
  "wrong receipts root": wrongRoot,
  "one transaction less": oneLess,
  "wrong receipts root, hashes zero": (frames, index) => withoutHashes(wrongRoot(frames, index), index),
  "one transaction less, hashes zero": (frames, index) => withoutHashes(oneLess(frames, index), index),
};

const ofFeed = (frames: readonly SentFrame[], feed: number): readonly SentFrame[] =>
  frames.map((frame) => ({ ...frame, feed }));
const shifted = (frames: readonly SentFrame[], byMs: number): readonly SentFrame[] =>
  frames.map((frame) => ({ ...frame, atMs: frame.atMs + byMs }));
const allOf = (frames: readonly SentFrame[], fault: Fault): readonly SentFrame[] =>
  Array.from({ length: MESSAGES_OF_BLOCK }, (_, index) => index).reduce((list, index) => fault(list, index), frames);

const sealing = (heads: Plan["heads"], shiftMs = 0): readonly NodeEvent[] =>
  [...heads].map(([number, atMs]): NodeEvent => ({ atMs: atMs + shiftMs, act: "seal", number }));

const create = (name: string, plan: Plan, changes: Partial<Scenario>): Scenario => ({
  name,
  feeds: 1,
  frames: plan.frames,
  node: sealing(plan.heads),
  feedEvents: [],
  isReorganised: false,
  ...changes,
});

const singleFaults = (plan: Plan): readonly Scenario[] =>
  Object.entries(FAULTS).flatMap(([name, fault]) =>
    Array.from({ length: MESSAGES_OF_BLOCK }, (_, index) =>
      create(`${FAULTY}-${index} ${name}`, plan, { frames: fault(plan.frames, index) }),
    ),
  );

const twoFeeds = (plan: Plan): readonly Scenario[] => {
  const { frames } = plan;
  const lost = frames.filter(({ index }) => index !== 1 && index !== 3);
  const corrupt = allOf(frames, wrongRoot);
  const zero = withoutHashes(frames, 0);
  const zeroCorrupt = withoutHashes(corrupt, 0);
  const pairs: readonly (readonly [string, readonly SentFrame[], readonly SentFrame[]])[] = [
    ["the second lags by 150 ms", frames, shifted(frames, 150)],
    ["the second lags by 1.5 s", frames, shifted(frames, 1_500)],
    ["the first loses messages, the second lags", lost, shifted(frames, 30)],
    ["the first is corrupt, the second lags", corrupt, shifted(frames, 30)],
    ["the second is corrupt and lags", frames, shifted(corrupt, 30)],
    ["the first has wrong gas, the second lags", allOf(frames, wrongGas), shifted(frames, 30)],
    ["the second has a transaction less, and lags", frames, shifted(allOf(frames, oneLess), 30)],
    ["the first is corrupt, hashes zero", zeroCorrupt, shifted(zero, 30)],
    ["the second is corrupt, hashes zero", zero, shifted(zeroCorrupt, 30)],
  ];
  return pairs.map(([name, first, second]) =>
    create(`two feeds: ${name}`, plan, { feeds: 2, frames: [...ofFeed(first, 0), ...ofFeed(second, 1)] }),
  );
};

const others = (plan: Plan): readonly Scenario[] => {
  const { frames, heads } = plan;
  const at = (index: number): number => frames.find(isAt(index))?.atMs ?? 0;
  const sealedMs = heads.get(FAULTY) ?? 0;
  const downFromMs = at(2);
  return [
    create("no fault", plan, {}),
    create("the feed is frozen", plan, { frames: frames.filter(({ atMs }) => atMs <= at(3)) }),
    create("the feed is frozen for 1.5 s", plan, {
      frames: frames.filter(({ atMs }) => atMs <= at(3) || atMs > at(3) + 1_500),
    }),
    create("the connection is closed", plan, { feedEvents: [{ atMs: at(3) + 10, act: "disconnect" }] }),
    create("the feed is closed, and opens again", plan, {
      feedEvents: [
        { atMs: at(3) + 10, act: "close" },
        { atMs: at(3) + 1_000, act: "open" },
      ],
    }),
    create("the node is ahead by 500 ms", plan, { node: sealing(heads, -560) }),
    create("the node is ahead by a block", plan, { node: sealing(heads, -1_060) }),
    create("the node is behind by 800 ms", plan, { node: sealing(heads, 800) }),
    create("the node is behind by 2.5 s", plan, { node: sealing(heads, 2_500) }),
    create("the node is down for 1.2 s", plan, {
      node: [
        ...sealing(heads),
        { atMs: downFromMs, act: "down", number: 0 },
        { atMs: downFromMs + 1_200, act: "up", number: 0 },
      ],
    }),
    create("the last block is replaced and back", plan, {
      node: [
        ...sealing(heads),
        { atMs: sealedMs + 350, act: "replace", number: FAULTY },
        { atMs: sealedMs + 700, act: "return", number: FAULTY },
      ],
      isReorganised: true,
    }),
  ];
};

const isOf = (number: number, index: number) => (frame: SentFrame) => frame.number === number && frame.index === index;

/** An empty message after this one. Its block has the same hash. */
const emptyAfter = (frame: SentFrame, afterMs: number): SentFrame => ({
  ...altered(frame, (message) => {
    message.index++;
    message.diff.transactions = [];
    delete message.base;
  }),
  index: frame.index + 1,
  atMs: frame.atMs + afterMs,
});

/** The block before the faulty one has a message more, so that no number of messages is usual. */
const withUnusualCount = (frames: readonly SentFrame[]): readonly SentFrame[] =>
  frames.flatMap((frame) =>
    isOf(FAULTY - 1, MESSAGES_OF_BLOCK - 1)(frame) ? [frame, emptyAfter(frame, PAUSE_MS)] : [frame],
  );

const PAUSE_MS = 5;
/** The executions of earlier messages have ended after this time. */
const SHOWN_AFTER_MS = 60;
const LAST = MESSAGES_OF_BLOCK - 1;

/** An attempt at the faulty block with an empty message, which is abandoned before the recorded one begins with an equal index 0. */
const abandoned = (frames: readonly SentFrame[]): readonly SentFrame[] =>
  frames.filter(isAt(0)).flatMap((frame) => {
    const first = altered(frame, (message) => {
      message.payload_id = "0x0ba11d0000000001";
    });
    return [
      { ...first, atMs: first.atMs - 3 * PAUSE_MS },
      { ...emptyAfter(first, 0), atMs: first.atMs - 2 * PAUSE_MS },
    ];
  });

const restarts = (plan: Plan): readonly Scenario[] => {
  const { frames } = plan;
  const all = [...frames, ...abandoned(frames)];
  return [
    create("a restart with an equal index 0, on one connection", plan, { frames: all, mustShow: FAULTY }),
    create("a restart with an equal index 0, on another connection", plan, {
      feeds: 2,
      mustShow: FAULTY,
      frames: [
        ...ofFeed(
          frames.filter(({ number }) => number !== FAULTY),
          0,
        ),
        ...ofFeed(abandoned(frames), 0),
        ...ofFeed(frames, 1),
      ],
    }),
  ];
};

/** The last message of the faulty block is discarded for its hash. The next block begins after a pause. */
const discardedLast = (plan: Plan): readonly Scenario[] =>
  [50, 100, 200, 400].map((pauseMs) => {
    const frames = withUnusualCount(wrongRoot(plan.frames, LAST));
    const lastMs = frames.find(isAt(LAST))?.atMs ?? 0;
    const nextMs = frames.find(isOf(FAULTY + 1, 0))?.atMs ?? 0;
    const byMs = lastMs + pauseMs - nextMs;
    return create(`the last message is discarded, ${pauseMs} ms before the next block`, plan, {
      frames: frames.map((frame) => (frame.number > FAULTY ? { ...frame, atMs: frame.atMs + byMs } : frame)),
      node: sealing(plan.heads).map((event) =>
        event.number >= FAULTY ? { ...event, atMs: event.atMs + byMs } : event,
      ),
    });
  });

/** An empty message of the faulty block arrives while the block above it is shown. */
const lateBelow = (plan: Plan): readonly Scenario[] => {
  const frames = withUnusualCount(plan.frames);
  const last = frames.find(isAt(LAST));
  const above = frames.find(isOf(FAULTY + 1, 2));
  const late = last && above ? [{ ...emptyAfter(last, 0), atMs: above.atMs + SHOWN_AFTER_MS }] : [];
  const lateMs = late[0]?.atMs ?? 0;
  // The node is behind, so that the block below is not sealed when its message arrives.
  const node = sealing(plan.heads, 300);
  return [
    create("a late message of the block below", plan, { frames: [...frames, ...late], node }),
    create("a late message of the block below, while the node is down", plan, {
      frames: [...frames, ...late],
      node: [...node, { atMs: lateMs - 500, act: "down", number: 0 }, { atMs: lateMs + 500, act: "up", number: 0 }],
    }),
  ];
};

/** The scenarios of one recording: each fault at each message of a block, two feeds, the connection, the node. */
export const createScenarios = (plan: Plan): readonly Scenario[] => [
  ...others(plan),
  ...restarts(plan),
  ...discardedLast(plan),
  ...lateBelow(plan),
  ...twoFeeds(plan),
  ...singleFaults(plan),
];
