import type { Clock } from "../core/clock.ts";
import { type BlockId, isCanonicalIn, type RingBlock } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import { BackOff } from "../nodes/backOff.ts";
import { headScope, readBlock, readBlocks, readLinked } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { trueCopyOf, untilWrong } from "./announcedBlocks.ts";
import { START_BLOCKS } from "./blockBackfill.ts";
import type { BlockRing } from "./blockRing.ts";
import type { CanonicalChain } from "./canonicalChain.ts";
import type { ChainIdentity } from "./chainIdentity.ts";
import { type ChainPath, hasBlock, MAX_GAP_BLOCKS } from "./chainPath.ts";
import { type Agree, aloneWaitMs, LOST_MS, requiredOrigins } from "./decideHead.ts";
import type { FollowedOrigins, OfferedHead } from "./followedOrigins.ts";

/** Returns how many origins run these nodes. */
const originsOf = (nodes: readonly UpstreamNode[]): number => new Set(nodes.map(({ origin }) => origin)).size;

const isSameBlock = (one: BlockId, other: BlockId): boolean => one.number === other.number && one.hash === other.hash;

/** Returns the copies of a block that nodes have. A node that does not answer has none. */
const readCopies = async (
  { number, hash }: BlockId,
  offered: readonly OfferedHead[],
  signal: AbortSignal,
): Promise<readonly OfferedHead[]> => {
  const copies = await Promise.all(
    offered.map(async ({ node, head }) => ({
      node,
      head: head.block.number > number ? await readBlock(node, number, signal).catch(() => undefined) : head,
    })),
  );
  return copies.flatMap(({ node, head }) =>
    head && isSameBlock(head.block, { number, hash }) ? [{ node, head }] : [],
  );
};

/**
 * Returns the highest of the heads that `required` origins have. Nodes with higher heads are asked for the block by number,
 * because no ring links their heads yet.
 */
const findAgreedHead = async (
  offered: readonly OfferedHead[],
  required: number,
  signal: AbortSignal,
): Promise<OfferedHead | undefined> => {
  const byNumber = [...offered].sort((a, b) => Number(b.head.block.number - a.head.block.number));
  // Nodes may offer one block.
  const heads = byNumber
    .map(({ head }) => head)
    .filter(({ block }, at, all) => at === all.findIndex((other) => isSameBlock(other.block, block)));
  const candidates = await Promise.all(
    heads.map(async (head) => ({ head, copies: await readCopies(head.block, offered, signal) })),
  );
  const agreed = candidates.find(({ copies }) => originsOf(copies.map(({ node }) => node)) >= required);
  if (agreed === undefined) {
    return undefined;
  }
  const head = trueCopyOf(
    agreed.head,
    agreed.copies.map((copy) => copy.head),
  );
  return agreed.copies.find((copy) => copy.head === head);
};

/** What a node has of the served chain. */
interface HeadEvidence {
  /** The node has the served head, so that it is of this chain. */
  readonly hasServed: boolean;
  /** The node has a block halfway to its head. A node that is ahead has one. The node of an invented head does not. */
  readonly hasBlockBetween: boolean;
}

/** Reads the evidence in one batch, so that one machine behind a load balancer answers all of it. */
const readEvidence = async (
  { node, head }: OfferedHead,
  { latest }: BlockRing,
  signal: AbortSignal,
): Promise<HeadEvidence> => {
  const middle = (latest.number + head.block.number) / 2n;
  const blocks = await readBlocks(node, [latest.number, middle], headScope(signal));
  const [served, between] = blocks.map((block) => {
    // A node may state by an error that it does not have a block.
    const isAbsent = block instanceof NodeError && block.kind === "missingData";
    return isAbsent ? undefined : block;
  });
  if (served instanceof NodeError) {
    throw served;
  }
  if (served === undefined && head.block.number > latest.number) {
    throw new NodeError("missingData", node.name, "a machine that is behind the offered head answered");
  }
  return {
    hasServed: served?.block.hash === latest.hash,
    hasBlockBetween: between !== undefined && !(between instanceof NodeError) && between.block.number === middle,
  };
};

export interface NewRingsOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly agree: Agree;
  /** All nodes of the chain, the preferred ones first. */
  readonly nodes: readonly UpstreamNode[];
  readonly canonical: CanonicalChain;
  readonly identity: Pick<ChainIdentity, "verify" | "recheck" | "reset">;
  readonly blockTimeMs: () => number;
  /** Serves blocks. Returns false if `base`, the ring that they were found for, was replaced. */
  readonly serve: (path: ChainPath, base: BlockRing | undefined) => boolean;
  /** Time since which no origin with a vote has the served head; undefined if one has it. */
  readonly lostSinceMs: () => number | undefined;
}

/** The first heads of all origins are awaited for this time, and then the blocks that some have below their heads. */
const FIRST_HEADS_MS = 2_000;
/** While one of three origins is alone, its head is not served for this time. The block time is not known yet. */
const FIRST_ALONE_MS = aloneWaitMs(0);
/** The search for a block that enough origins have is repeated at growing intervals. */
const SEARCHES = { failures: 1, openMs: 1_000, maxOpenMs: 10_000 };
/** A block of this age is the newest one of a chain. An origin that synchronises has older ones. */
const FRESH_SECONDS = 30;
const FRESH_BLOCKS = 3;
/** The path from a fresh block to the ring is not longer: the chain would have more than 10 blocks in a second. */
const MAX_PATH_BLOCKS = 300n;
/** A node that does not answer holds the served head for this time: the head would go back for one failed request. */
const UNANSWERED_MS = 60_000;

/** Rule 7. Serves a head that enough origins have although it does not link to a ring. The first ring or a new one begins with it. */
export class NewRings {
  readonly #options: NewRingsOptions;
  readonly #origins: FollowedOrigins;
  readonly #searches: BackOff;
  /** Time of the first head. */
  #firstMs: number | undefined;
  /** That of the options, at the last search. */
  #lostSinceMs: number | undefined;
  /** Time since which a node has not answered whether a lower head is an ancestor of the served one. */
  #unansweredMs: number | undefined;

  constructor(options: NewRingsOptions, origins: FollowedOrigins) {
    this.#options = options;
    this.#origins = origins;
    this.#searches = new BackOff({ ...SEARCHES, nowMs: () => options.clock.nowMs() });
  }

  /** Returns the time for which more first heads are awaited. Connections may be refused meanwhile. */
  firstWaitMs(): number {
    const { nodes, agree, clock } = this.#options;
    this.#firstMs ??= clock.nowMs();
    const reported = new Set(this.#origins.unlinked().map(({ node }) => node));
    const isMissing = nodes.some((node) => !reported.has(node) && node.identity.fault === undefined);
    const able = nodes.filter(({ isConnectable, identity }) => isConnectable && identity.fault?.kind !== "wrongChain");
    const isAlone = originsOf([...reported]) === 1 && originsOf(able) > 2;
    const forMs = isAlone ? FIRST_ALONE_MS : isMissing ? FIRST_HEADS_MS : 0;
    return agree === 1 ? 0 : Math.min(this.#firstMs + forMs - clock.nowMs(), FIRST_HEADS_MS);
  }

  /** Begins the first ring with the highest of the first heads that enough origins have. If there is none, the preferred node decides. */
  async begin(): Promise<boolean> {
    const { agree, clock, signal, serve } = this.#options;
    const heads = this.#origins.unlinked();
    const required = requiredOrigins(agree, originsOf(heads.map(({ node }) => node)));
    const late = new AbortController();
    void clock.sleep(FIRST_HEADS_MS, AbortSignal.any([signal, late.signal])).then(() => late.abort());
    const agreed = await findAgreedHead(heads, required, late.signal);
    late.abort();
    const first = agreed ?? heads[0];
    const isAgreed = agreed !== undefined && required > 1;
    return first !== undefined && serve({ blocks: [first.head], joined: false, isAgreed }, undefined);
  }

  /** Whether enough origins have heads that do not link to the ring, and a search for one of them is due. */
  isDue(ring: BlockRing): boolean {
    const isWanted = this.#required(ring) !== undefined;
    const lostSinceMs = this.#options.lostSinceMs();
    if (lostSinceMs !== this.#lostSinceMs || (!isWanted && this.#searches.available)) {
      this.#searches.reset();
    }
    this.#lostSinceMs = lostSinceMs;
    return isWanted && this.#searches.available;
  }

  /** Returns whether a head was served. */
  async search(ring: BlockRing): Promise<boolean> {
    this.#searches.begin();
    let isServed = false;
    try {
      isServed = await this.#search(ring);
      return isServed;
    } finally {
      // If the ring changed during the search, it is repeated at once.
      if (isServed || this.#options.canonical.ring !== ring) {
        this.#searches.reset();
      } else {
        this.#searches.failed();
      }
    }
  }

  /** Returns how many origins must have a head that does not link to the ring. Undefined if fewer have one. */
  #required(ring: BlockRing): number | undefined {
    const { heads, voters } = this.#origins.detached(ring);
    const required = requiredOrigins(this.#options.agree, voters);
    return originsOf(heads.map(({ node }) => node)) < required ? undefined : required;
  }

  async #search(ring: BlockRing): Promise<boolean> {
    const { canonical, identity, signal, serve } = this.#options;
    const { heads } = this.#origins.detached(ring);
    const required = this.#required(ring);
    const agreed = required === undefined ? undefined : await findAgreedHead(heads, required, signal);
    if (required === undefined || agreed === undefined) {
      return false;
    }
    const evidence = required === 1 ? await readEvidence(agreed, ring, signal) : undefined;
    // Only another node of this chain has the served head.
    const outcome = evidence?.hasServed === true ? undefined : await identity.verify(agreed.node);
    const genesis = outcome?.kind === "reset" ? outcome.genesis : undefined;
    const isOther = outcome?.kind === "other" || outcome?.kind === "unknown";
    const isShown = evidence === undefined || this.#isShownAlone(agreed, evidence, ring);
    const isServed = genesis !== undefined || (isShown && !(await this.#isBehind(agreed.head.block, ring, heads)));
    // The votes may have changed while nodes were read.
    if (isOther || !isServed || canonical.ring !== ring || this.#required(ring) !== required) {
      return false;
    }
    return serve({ blocks: [agreed.head], joined: false, isAgreed: required > 1, genesis }, ring);
  }

  /** Rule 7. Whether one origin alone suffices: its chain goes on far above the served head, or the served head is lost. */
  #isShownAlone({ head }: OfferedHead, { hasServed, hasBlockBetween }: HeadEvidence, ring: BlockRing): boolean {
    const { clock, lostSinceMs } = this.#options;
    const { number } = head.block;
    if (hasServed) {
      return hasBlockBetween && number - ring.latest.number > MAX_GAP_BLOCKS;
    }
    const nowMs = clock.nowMs();
    const isLost = nowMs - (lostSinceMs() ?? nowMs) >= LOST_MS;
    const isAlone = this.#origins.detached(ring).voters === 1;
    // Rule 5. An origin that is alone and below a filled ring lags. A shorter ring may be an invented head, or its blocks were replaced meanwhile.
    return isLost && (!isAlone || number > ring.oldest || ring.length < START_BLOCKS);
  }

  /** Rule 5. Whether a block is an ancestor of the ring: its nodes lag. */
  async #isBehind(block: RingBlock, ring: BlockRing, heads: readonly OfferedHead[]): Promise<boolean> {
    const { signal, blockTimeMs } = this.#options;
    if (block.number >= ring.oldest) {
      return isCanonicalIn(ring, block);
    }
    const others = this.#options.nodes.filter(
      (node) => node.identity.isIdentified && !heads.some((head) => head.node === node),
    );
    const ageSeconds = Date.now() / 1_000 - Number(block.timestamp);
    // A block of the future says nothing about its age.
    const isFresh = ageSeconds >= 0 && ageSeconds < Math.max(FRESH_SECONDS, (FRESH_BLOCKS * blockTimeMs()) / 1_000);
    // The node of an invented head may state that it has any block, but no path to the newest block of the others.
    const results = await Promise.all(
      others.map((node) => (isFresh ? this.#hasPath(node, block, ring) : hasBlock(node, block, signal))),
    );
    return results.includes(true) || this.#isAwaited(results.includes(undefined));
  }

  /** Whether the answer of a node is awaited. */
  #isAwaited(isUnanswered: boolean): boolean {
    const nowMs = this.#options.clock.nowMs();
    this.#unansweredMs = isUnanswered ? (this.#unansweredMs ?? nowMs) : undefined;
    return this.#unansweredMs !== undefined && nowMs - this.#unansweredMs < UNANSWERED_MS;
  }

  /** Whether the node has the blocks between a block and the ring. Undefined if it does not answer. */
  async #hasPath(node: UpstreamNode, { number, hash }: RingBlock, ring: BlockRing): Promise<boolean | undefined> {
    const { signal } = this.#options;
    const top = ring.at(ring.oldest)?.parentHash;
    if (top === undefined || ring.oldest - number > MAX_PATH_BLOCKS) {
      return false;
    }
    const linked = await readLinked(node, { from: number, to: ring.oldest - 1n }, top, signal).catch(() => undefined);
    return linked && untilWrong(linked, ring).at(-1)?.block.hash === hash;
  }
}
