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
  index: number;
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

/** The scenarios of one recording: each fault at each message of a block, two feeds, the connection, the node. */
export const createScenarios = (plan: Plan): readonly Scenario[] => [
  ...others(plan),
  ...twoFeeds(plan),
  ...singleFaults(plan),
];
