import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { hashAt, headOf, isOnChain, type NodeChain } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";

/** `auto`: a majority of the origins with a vote. A number: that many of them, or all if there are fewer. */
export type Agree = "auto" | number;

/** An origin with a vote. It has a block if one of its nodes has it. */
export interface Voter {
  readonly name: string;
  /** Orders origins that contradict each other: by priority, then as they are configured. */
  readonly rank: number;
  /** Time since which no connection to its nodes can be opened. Undefined if one can. */
  readonly unconnectedMs: number | undefined;
  /** Time of its newest head. */
  readonly newHeadMs: number;
  readonly chains: readonly NodeChain[];
}

export interface HeadVotes {
  readonly ring: BlockRing;
  readonly voters: readonly Voter[];
  /** The names of the origins to which connections can be opened, with or without a vote. */
  readonly connected: ReadonlySet<string>;
  readonly agree: Agree;
  readonly blockTimeMs: number;
  readonly nowMs: number;
  /** Time of the last change of the served head. */
  readonly servedMs: number;
  /** Time since which no voter has the served head; undefined if one has it. */
  readonly lostSinceMs: number | undefined;
  /** Returns the time when a block was first announced; of a block in the ring, the time when the head was served. */
  readonly seenMs: (hash: Hash) => number;
}

export interface AgreedBlock {
  readonly number: bigint;
  readonly hash: Hash;
  /** A chain that has the block. */
  readonly chain: NodeChain;
}

/**
 * The blocks above the newest agreed one. `wait`: origins may still agree; decide again after that time.
 * `lag`: these origins lose their vote, then decide again. `one`: origins contradict each other, and this one decides.
 * `back`: the agreed block below the served head is served.
 */
export type NextStep =
  | { readonly kind: "none" | "back" }
  | { readonly kind: "wait"; readonly forMs: number; readonly isContradicted?: boolean }
  | { readonly kind: "lag"; readonly voters: readonly Voter[] }
  | { readonly kind: "one"; readonly voter: Voter };

export interface HeadDecision {
  /** The number of origins that must have a block. */
  readonly required: number;
  /** The highest block that the required number of origins has; undefined if there is none in the ring or above it. */
  readonly agreed: AgreedBlock | undefined;
  readonly next: NextStep;
}

/** An origin that cannot be connected to has no vote after this time. */
export const UNCONNECTED_MS = 2_000;
/** The least time after which an origin has no vote that lacks the next block. */
const MIN_WAIT_MS = 2_000;
/** The served head moves back if no voter has it for this time. */
export const LOST_MS = 2_000;
const MAX_WAIT_MS = 15_000;
/** Origins that are late by less than this do not lose their vote: a slot without a block looks like a standstill. */
const MIN_LATE_MS = 1_000;
/** Blocks without a new head, after which an origin has no vote. */
const SILENT_BLOCKS = 3;
/** Blocks that an origin may be behind the others. */
const LAG_BLOCKS = 2;

/** Rule 1. Returns how many of `voters` origins must have a block. */
export const requiredOrigins = (agree: Agree, voters: number): number =>
  Math.max(1, agree === "auto" ? Math.floor(voters / 2) + 1 : Math.min(agree, voters));

/** Rule 1. An origin has a block if one of its nodes has it. */
const has = ({ chains }: Voter, block: BlockId, ring: BlockRing): boolean =>
  chains.some((chain) => isOnChain(chain, block, ring));

/** Whether a voter has the newest block of the ring, which is the served head. */
export const isHeld = (voters: readonly Voter[], ring: BlockRing): boolean =>
  voters.some((voter) => has(voter, ring.latest, ring));

/** Rule 1. Returns the highest block that `required` origins have, with all below it. Of two at one number, the ring's counts. */
const highestAgreed = ({ voters, ring }: HeadVotes, required: number): AgreedBlock | undefined => {
  let best: AgreedBlock | undefined;
  const offer = (block: AgreedBlock): boolean => {
    const isAgreed = voters.filter((voter) => has(voter, block, ring)).length >= required;
    if (isAgreed && (best === undefined || block.number > best.number)) {
      best = block;
    }
    return isAgreed;
  };
  const chains = voters.flatMap((voter) => voter.chains);
  for (const chain of chains) {
    const { number } = chain.base;
    const hash = hashAt(chain, number, ring);
    if (hash !== undefined) {
      offer({ number, hash, chain });
    }
  }
  for (const chain of chains) {
    chain.blocks.every(({ block }) => offer({ number: block.number, hash: block.hash, chain }));
  }
  return best;
};

type Groups = ReadonlyMap<Hash, readonly Voter[]>;

/**
 * The voters by their block at one number, of the chains that `counts` selects. A voter with nodes on two branches is in both
 * groups.
 */
const groupsAt = (number: bigint, { voters, ring }: HeadVotes, counts: (chain: NodeChain) => boolean): Groups => {
  const groups = new Map<Hash, Voter[]>();
  for (const voter of voters) {
    const chains = voter.chains.filter(counts);
    for (const hash of new Set(chains.map((chain) => hashAt(chain, number, ring)))) {
      if (hash !== undefined) {
        groups.set(hash, [...(groups.get(hash) ?? []), voter]);
      }
    }
  }
  return groups;
};

interface WaitTimes {
  readonly lagMs: number;
  readonly silenceMs: number;
  /** For origins without a block that one alone has, or that others contradict. */
  readonly aloneMs: number;
}

/** Rule 3. Returns the time after which an origin that lacks the next block loses its vote. */
export const lagWaitMs = (blockTimeMs: number): number =>
  Math.min(Math.max(LAG_BLOCKS * blockTimeMs, MIN_WAIT_MS), MAX_WAIT_MS);

/** Rule 2. Returns the time for which two others are awaited before one origin alone decides. */
export const aloneWaitMs = (blockTimeMs: number): number => Math.max(SILENT_BLOCKS * blockTimeMs, MAX_WAIT_MS);

const waitTimes = ({ blockTimeMs }: HeadVotes): WaitTimes => ({
  lagMs: lagWaitMs(blockTimeMs),
  silenceMs: Math.max(SILENT_BLOCKS * blockTimeMs, MIN_WAIT_MS),
  aloneMs: aloneWaitMs(blockTimeMs),
});

/** Returns the time of the first block that another origin announced since the voter's newest head, and that the voter lacks. */
const behindSinceMs = (voter: Voter, { voters, ring, seenMs }: HeadVotes): number => {
  const lacking = voters.flatMap(({ chains }) =>
    chains.flatMap(({ blocks }) => blocks.filter(({ block }) => !has(voter, block, ring))),
  );
  return Math.min(...lacking.map(({ block }) => seenMs(block.hash)).filter((atMs) => atMs >= voter.newHeadMs));
};

/** Rule 2. The voter that decides a contradiction: one that continues the served head; if several or none do, the preferred one. */
const deciderOf = (voters: readonly Voter[], ring: BlockRing): Voter | undefined => {
  const continuing = voters.filter((voter) => has(voter, ring.latest, ring));
  return [...(continuing.length > 0 ? continuing : voters)].sort((a, b) => a.rank - b.rank)[0];
};

/** The voters at the number above the agreed block. */
interface Ballot {
  /** Voters with the same block. */
  readonly groups: readonly (readonly Voter[])[];
  readonly undecided: readonly Voter[];
  /** Time of the first block at that number. */
  readonly sinceMs: number;
}

/** Rule 2. Returns the time when a voter has had no new head for SILENT_BLOCKS, and another origin has gone on for `waitMs`. */
const silentAtMs = (voter: Voter, waitMs: number, votes: HeadVotes): number =>
  Math.max(voter.newHeadMs + waitTimes(votes).silenceMs, behindSinceMs(voter, votes) + waitMs);

/**
 * Rules 2 and 3. Whether a voter is awaited for `aloneMs`, else for `lagMs`. With three or more origins, it is unless two others have a
 * block that it lacks, and more origins have no other block there. One alone may have invented its block while the chain paused.
 * Rule 4. Origins without a vote count here.
 */
const isAwaited = (voter: Voter, { groups }: Ballot, { connected }: HeadVotes): boolean => {
  const [most, second] = groups.toSorted((a, b) => b.length - a.length);
  const isOutvoted =
    most !== undefined && most.length > 1 && most.length > (second?.length ?? 0) && !most.includes(voter);
  return connected.size > 2 && !isOutvoted;
};

/** Rule 3. Returns the time when a voter that lacks the next block loses its vote. */
const lateAtMs = (waitMs: number, { sinceMs }: Ballot, votes: HeadVotes): number => {
  const { lagMs, aloneMs } = waitTimes(votes);
  if (waitMs === aloneMs) {
    return sinceMs + aloneMs;
  }
  // Given that time once: an origin that lags and goes on has a block served, again and again. The wait begins with the next block too.
  return sinceMs + Math.min(lagMs, Math.max(MIN_LATE_MS, votes.servedMs - sinceMs + lagMs));
};

/** Rule 2. Returns the time when a voter that cannot be connected to loses its vote. */
const unconnectedAtMs = ({ unconnectedMs = Number.POSITIVE_INFINITY }: Voter): number => unconnectedMs + UNCONNECTED_MS;

/** The time when a voter loses its vote, if it has no new head until then. */
interface VoteEnd {
  readonly voter: Voter;
  readonly atMs: number;
}

/** Ends the votes whose time has come, but not all. Returns undefined if there is none. */
const endVotes = (ends: readonly VoteEnd[], { voters, nowMs }: HeadVotes): NextStep | undefined => {
  const late = ends.filter(({ atMs }) => atMs <= nowMs).map(({ voter }) => voter);
  return late.length > 0 && late.length < voters.length ? { kind: "lag", voters: late } : undefined;
};

/** Waits for the next end of a vote. */
const awaitEnd = (ends: readonly VoteEnd[], nowMs: number): NextStep => {
  const nextMs = Math.min(...ends.map(({ atMs }) => atMs).filter((atMs) => atMs > nowMs));
  return Number.isFinite(nextMs) ? { kind: "wait", forMs: nextMs - nowMs } : { kind: "none" };
};

/** Decides about the blocks above the agreed one, by the voters that have a child of it. */
const decideAbove = (votes: HeadVotes, required: number, blocks: Groups): NextStep => {
  const { ring, voters, connected, nowMs, seenMs } = votes;
  const groups = [...blocks.values()];
  const undecided = voters.filter((voter) => !groups.some((group) => group.includes(voter)));
  const sinceMs = Math.min(...[...blocks.keys()].map(seenMs));
  const ballot = { groups, undecided, sinceMs };
  const { lagMs, aloneMs } = waitTimes(votes);
  const ends = voters.map((voter) => {
    const waitMs = isAwaited(voter, ballot, votes) ? aloneMs : lagMs;
    const lateMs = undecided.includes(voter) ? lateAtMs(waitMs, ballot, votes) : Number.POSITIVE_INFINITY;
    return { voter, atMs: Math.min(silentAtMs(voter, waitMs, votes), lateMs, unconnectedAtMs(voter)) };
  });
  const lag = endVotes(ends, votes);
  if (lag !== undefined) {
    return lag;
  }
  const largest = Math.max(...groups.map((group) => group.length));
  const decider = deciderOf(groups.flat(), ring);
  if (groups.length === 1 || largest + undecided.length >= required || decider === undefined) {
    return awaitEnd(ends, nowMs);
  }
  // Rule 4. Origins that lag and go on may make a majority.
  const others = [...connected].filter((name) => voters.every((voter) => voter.name !== name)).length;
  const isDecidable = largest + undecided.length + others >= requiredOrigins(votes.agree, voters.length + others);
  if (others > 0 && isDecidable && nowMs < sinceMs + aloneMs) {
    return awaitEnd([...ends, { voter: decider, atMs: sinceMs + aloneMs }], nowMs);
  }
  return { kind: "one", voter: decider };
};

/**
 * Rule 2. Decides while only branches without the agreed block have blocks above it. They contradict the voters that have it. Those keep
 * their votes unless they stand still while such a branch goes on: the agreed block may be one that they cannot leave.
 */
const decideBeside = (votes: HeadVotes, agreed: AgreedBlock): NextStep => {
  const { voters, ring, nowMs } = votes;
  const { aloneMs, silenceMs } = waitTimes(votes);
  const holders = voters.filter((voter) => has(voter, agreed, ring));
  // One with nodes on two branches holds the agreed block, and goes on beside it.
  const beside = voters.filter(({ chains }) =>
    chains.some((chain) => hashAt(chain, agreed.number, ring) !== agreed.hash && headOf(chain).number > agreed.number),
  );
  const ends = holders
    .filter(({ name, newHeadMs }) => beside.some((other) => other.name !== name && other.newHeadMs > newHeadMs))
    .map((voter) => ({ voter, atMs: Math.min(silentAtMs(voter, aloneMs, votes), unconnectedAtMs(voter)) }));
  const next = endVotes(ends, votes) ?? awaitEnd(ends, nowMs);
  const isStill = ends.length === holders.length && ends.every(({ voter }) => nowMs >= voter.newHeadMs + silenceMs);
  return next.kind === "wait" ? { ...next, isContradicted: isStill } : next;
};

/** Decides about the blocks above the agreed one. */
const decideNext = (votes: HeadVotes, required: number, agreed: AgreedBlock | undefined): NextStep => {
  const { ring } = votes;
  const number = agreed?.number ?? ring.oldest - 1n;
  const children = groupsAt(number + 1n, votes, (chain) => agreed === undefined || isOnChain(chain, agreed, ring));
  if (children.size > 0) {
    return decideAbove(votes, required, children);
  }
  const hasOthers = groupsAt(number + 1n, votes, () => true).size > 0;
  return agreed !== undefined && hasOthers ? decideBeside(votes, agreed) : { kind: "none" };
};

/** Rule 5. Decides while no voter has the served head. One origin that is lower may only be behind: a machine of it lags. */
const decideLost = ({ voters, ring, lostSinceMs, nowMs }: HeadVotes, agreed: AgreedBlock | undefined): NextStep => {
  if (agreed === undefined || agreed.number >= ring.latest.number || lostSinceMs === undefined || voters.length < 2) {
    return { kind: "none" };
  }
  const forMs = lostSinceMs + LOST_MS - nowMs;
  return forMs > 0 ? { kind: "wait", forMs } : { kind: "back" };
};

/** Returns the highest block that enough origins have, and what to do next, by rules 1 to 5 (docs/architecture.md, Agreement). Pure. */
export const decideHead = (votes: HeadVotes): HeadDecision => {
  const { voters, agree } = votes;
  const required = requiredOrigins(agree, voters.length);
  const agreed = highestAgreed(votes, required);
  const above = required === 1 ? undefined : decideNext(votes, required, agreed);
  return { required, agreed, next: above === undefined || above.kind === "none" ? decideLost(votes, agreed) : above };
};
