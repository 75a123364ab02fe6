import assert from "node:assert/strict";
import { test } from "node:test";
import { createBlockRing } from "../../src/heads/blockRing.ts";
import { type AgreedBlock, decideHead, type HeadVotes, type Voter } from "../../src/heads/decideHead.ts";
import { blockOf, hashOf } from "../support/builders/heads.ts";

/** The served head. */
const SERVED = 10;
/** The newest head of an origin without a block above the served one. Those blocks are announced at 0. */
const BEFORE_MS = -1_000;
const STEP_MS = 100;
const LIMIT_MS = 120_000;

const sealed = (number: number, fork: number, parentFork: number) => ({
  block: blockOf(number, fork, parentFork),
  header: undefined,
});

const ring = createBlockRing(Array.from({ length: SERVED }, (_, index) => sealed(index + 1, 0, 0)));

interface Origin {
  /** The branch of its blocks above `from`. Undefined: it has the block at `from`, and none above it. */
  readonly fork?: number;
  /** The number of those blocks. Default: 1. */
  readonly blocks?: number;
  /** The highest block of the served chain that it has. Default: the served head. */
  readonly from?: number;
  /** The time of its newest head. Default: that of its block above the served head, or before. */
  readonly newHeadMs?: number;
  readonly unconnectedMs?: number;
  /** Its head does not link to the ring. */
  readonly isDetached?: true;
}

const voterOf = (origin: Origin, rank: number): Voter => {
  const { fork, blocks = 1, from = SERVED, newHeadMs = fork === undefined ? BEFORE_MS : 0, unconnectedMs } = origin;
  const above = Array.from({ length: fork === undefined ? 0 : blocks }, (_, index) =>
    sealed(from + 1 + index, fork ?? 0, index === 0 ? 0 : (fork ?? 0)),
  );
  const base = { number: BigInt(from), hash: hashOf(from) };
  const chains = origin.isDetached ? [] : [{ base, blocks: above }];
  return { name: `origin${rank + 1}`, rank, unconnectedMs, newHeadMs, chains };
};

interface Course {
  readonly blockTimeMs?: number;
  /** The positions of origins that lost their votes before. They can be connected to. */
  readonly voteless?: readonly number[];
  /** Changes the origins at a time. */
  readonly later?: (nowMs: number, origins: readonly Origin[]) => readonly Origin[];
}

interface Outcome {
  readonly atMs: number;
  /** The branch that is served. */
  readonly fork: number;
  readonly isAlone: boolean;
  readonly isContradicted: boolean;
}

const forkOf = (hash: string): number => Number(`0x${hash.slice(-32)}`);

const agreedOutcome = (atMs: number, agreed: AgreedBlock, isAlone: boolean): Outcome => ({
  ...{ atMs, fork: forkOf(agreed.hash), isAlone, isContradicted: false },
});

/** Moves the clock until a block that is not served is decided. Returns undefined if none is in two minutes. */
const play = (origins: readonly Origin[], course: Course = {}): Outcome | undefined => {
  const { blockTimeMs = 2_000, voteless = [], later = (_, same) => same } = course;
  const lost = new Set(voteless.map((index) => `origin${index + 1}`));
  for (let nowMs = 0; nowMs <= LIMIT_MS; nowMs += STEP_MS) {
    const all = later(nowMs, origins).map(voterOf);
    const connected = new Set(all.filter(({ unconnectedMs }) => unconnectedMs === undefined).map(({ name }) => name));
    for (let isAgain = true; isAgain; ) {
      const votes: HeadVotes = {
        ...{ ring, connected, agree: "auto", blockTimeMs, nowMs, servedMs: 0, lostSinceMs: undefined },
        voters: all.filter(({ name }) => !lost.has(name)),
        seenMs: () => 0,
      };
      const { agreed, next, required } = decideHead(votes);
      if (agreed !== undefined && ring.at(agreed.number)?.hash !== agreed.hash) {
        return agreedOutcome(nowMs, agreed, required === 1);
      }
      isAgain = next.kind === "lag";
      if (next.kind === "lag") {
        for (const { name } of next.voters) {
          lost.add(name);
        }
      } else if (next.kind === "one") {
        const hash = next.voter.chains[0]?.blocks.at(-1)?.block.hash ?? ring.latest.hash;
        return { atMs: nowMs, fork: forkOf(hash), isAlone: true, isContradicted: true };
      }
    }
  }
  return undefined;
};

const HONEST: Origin = { fork: 1 };
const LIAR: Origin = { fork: 2 };
const SILENT: Origin = {};

test("a block that a majority of the origins has is served at once", () => {
  assert.deepEqual(play([LIAR, HONEST, HONEST]), { atMs: 0, fork: 1, isAlone: false, isContradicted: false });
  assert.deepEqual(play([HONEST, HONEST, SILENT]), { atMs: 0, fork: 1, isAlone: false, isContradicted: false });
  assert.deepEqual(play([LIAR, HONEST, HONEST, HONEST]), { atMs: 0, fork: 1, isAlone: false, isContradicted: false });
});

test("an origin whose heads do not arrive is undecided: a head of it within 15 s counts", () => {
  for (const atMs of [2_000, 6_000, 14_900]) {
    const arrives = (nowMs: number) => (nowMs < atMs ? SILENT : { ...HONEST, newHeadMs: atMs });
    const later = (nowMs: number) => [LIAR, arrives(nowMs), arrives(nowMs)];
    assert.deepEqual(play([], { later }), { atMs, fork: 1, isAlone: false, isContradicted: false });
    const beside = (nowMs: number) => [LIAR, HONEST, arrives(nowMs)];
    assert.deepEqual(play([], { later: beside }), { atMs, fork: 1, isAlone: false, isContradicted: false });
    const ofFour = (nowMs: number) => [LIAR, HONEST, arrives(nowMs), SILENT];
    const outcome = play([], { later: ofFour });
    assert.deepEqual([outcome?.fork, outcome?.isAlone], [1, false]);
  }
});

test("an origin that cannot be connected to has no vote after 2 s", () => {
  const refused: Origin = { unconnectedMs: 0 };
  assert.deepEqual(play([HONEST, refused]), { atMs: 2_000, fork: 1, isAlone: true, isContradicted: false });
  assert.deepEqual(play([HONEST, refused, refused]), { atMs: 2_000, fork: 1, isAlone: true, isContradicted: false });
  assert.deepEqual(play([HONEST, { unconnectedMs: -60_000 }])?.atMs, 0);
  // Of three, one has no vote, and the other two decide together.
  assert.deepEqual(play([LIAR, HONEST, refused])?.isContradicted, true);
  assert.equal(play([HONEST, HONEST, SILENT, refused])?.atMs, 2_000);
});

for (const [blockTimeMs, waitMs] of [
  [250, 15_000],
  [2_000, 15_000],
  [12_000, 36_000],
] as const) {
  test(`with blocks of ${blockTimeMs} ms, one of three origins decides alone after ${waitMs} ms without a head from two others`, () => {
    for (const silent of [2, 3]) {
      const origins = [HONEST, ...Array.from({ length: silent }, () => SILENT)];
      assert.deepEqual(play(origins, { blockTimeMs }), {
        ...{ atMs: waitMs, fork: 1, isAlone: true, isContradicted: false },
      });
    }
    // One that lost its vote before is one of the three.
    assert.equal(play([HONEST, SILENT, SILENT], { blockTimeMs, voteless: [2] })?.atMs, waitMs);
  });
}

for (const [blockTimeMs, waitMs] of [
  [250, 2_000],
  [2_000, 4_000],
  [12_000, 15_000],
] as const) {
  test(`with blocks of ${blockTimeMs} ms, the other of two origins decides after ${waitMs} ms`, () => {
    assert.deepEqual(play([HONEST, SILENT], { blockTimeMs }), {
      ...{ atMs: waitMs, fork: 1, isAlone: true, isContradicted: false },
    });
  });

  test(`with blocks of ${blockTimeMs} ms, an origin that lacks a block that two others have has no vote after ${waitMs} ms`, () => {
    assert.deepEqual(play([HONEST, HONEST, SILENT, SILENT], { blockTimeMs }), {
      ...{ atMs: waitMs, fork: 1, isAlone: false, isContradicted: false },
    });
  });
}

test("an origin whose head does not link, because its blocks cannot be read, is undecided: it is awaited for 15 s", () => {
  const detached: Origin = { isDetached: true };
  assert.equal(play([{ ...LIAR, blocks: 7 }, detached, SILENT], { voteless: [2] })?.atMs, 15_000);
  const later = (nowMs: number): readonly Origin[] => [
    { ...LIAR, blocks: 7 },
    nowMs < 10_000 ? { ...detached, newHeadMs: nowMs } : HONEST,
    nowMs < 10_000 ? SILENT : HONEST,
  ];
  assert.deepEqual(play([], { later }), { atMs: 10_000, fork: 1, isAlone: false, isContradicted: false });
});

test("without a majority, the branch of the served head goes on", () => {
  // The origins that are configured first leave the served head.
  const leaving: Origin = { fork: 2, from: SERVED - 1, blocks: 4 };
  assert.deepEqual(play([leaving, leaving, HONEST, HONEST]), {
    ...{ atMs: 0, fork: 1, isAlone: true, isContradicted: true },
  });
  assert.deepEqual(play([leaving, HONEST])?.fork, 1);
  // The served head itself stays while its origin has no block above it.
  assert.deepEqual(play([leaving, SILENT]), { atMs: 0, fork: 0, isAlone: true, isContradicted: true });
});

test("if both branches continue the served head, the better priority decides, then the first configured", () => {
  assert.deepEqual(play([HONEST, LIAR]), { atMs: 0, fork: 1, isAlone: true, isContradicted: true });
  assert.deepEqual(play([LIAR, HONEST])?.fork, 2);
  assert.deepEqual(play([HONEST, HONEST, LIAR, LIAR])?.fork, 1);
});

test("a contradiction is decided without a majority only after 15 s, while an origin that lost its vote may make one", () => {
  const late = (atMs: number) => (nowMs: number) => [
    LIAR,
    HONEST,
    nowMs < atMs ? SILENT : { ...HONEST, newHeadMs: atMs },
  ];
  assert.deepEqual(play([LIAR, HONEST, SILENT], { voteless: [2] }), {
    ...{ atMs: 15_000, fork: 2, isAlone: true, isContradicted: true },
  });
  // Its vote is back with the served head.
  assert.equal(play([], { later: late(6_000) })?.fork, 1);
});

test("an origin that is silent on its branch is not outvoted by one that goes on alone", () => {
  // The two have a block of the branch, and then nothing arrives from them for 10 s.
  const growing = (nowMs: number): readonly Origin[] => {
    const liar = { ...LIAR, blocks: 1 + Math.floor(nowMs / 250), newHeadMs: nowMs };
    return [liar, { ...HONEST, newHeadMs: 0 }, nowMs < 10_000 ? SILENT : { ...HONEST, newHeadMs: 10_000 }];
  };
  assert.deepEqual(play([], { later: growing, blockTimeMs: 250 }), {
    ...{ atMs: 10_000, fork: 1, isAlone: false, isContradicted: false },
  });
});
