import type { Clock } from "../core/clock.ts";
import type { BlockId, RingBlock } from "../core/heads.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import { readBlock, readLinked } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { trueCopyOf, untilWrong } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import type { CanonicalChain } from "./canonicalChain.ts";
import type { ChainIdentity } from "./chainIdentity.ts";
import { type Agree, loneWaitMs, requiredOrigins } from "./decideHead.ts";
import type { FollowedOrigins } from "./followedOrigins.ts";
import type { HeadSelection } from "./headSelection.ts";
import { hasBlock } from "./servedHead.ts";

/** A node's newest block. */
export interface OfferedHead {
  readonly node: UpstreamNode;
  readonly head: SealedBlock;
}

/** Reads a node's newest block. Returns undefined if the node does not answer. */
const readOffered = (node: UpstreamNode, signal: AbortSignal): Promise<OfferedHead | undefined> =>
  readBlock(node, "latest", signal).then(
    (head) => head && { node, head },
    () => undefined,
  );

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
  const agreed = candidates.find(({ copies }) => new Set(copies.map(({ node }) => node.origin)).size >= required);
  if (agreed === undefined) {
    return undefined;
  }
  const head = trueCopyOf(
    agreed.head,
    agreed.copies.map((copy) => copy.head),
  );
  return agreed.copies.find((copy) => copy.head === head);
};

export interface FirstHeadsOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly agree: Agree;
  /** All nodes of the chain, the preferred ones first. */
  readonly nodes: readonly UpstreamNode[];
  readonly canonical: CanonicalChain;
  readonly selection: HeadSelection;
}

/** The first heads of all origins are awaited for this time, and then the blocks that some have below their heads. */
const FIRST_HEADS_MS = 2_000;
/** While one of three origins is alone, its head is not served for this time. The block time is not known yet. */
const FIRST_LONE_MS = loneWaitMs(0);

/** Serves the first head: the highest of the first heads of all nodes that enough origins have. */
export class FirstHeads {
  readonly #options: FirstHeadsOptions;
  readonly #onServed: (offered: readonly OfferedHead[], served: OfferedHead) => void;
  readonly #heads = new Map<UpstreamNode, SealedBlock>();
  #waiting: AbortController | undefined;
  /** Time of the first offered head. */
  #firstMs: number | undefined;

  /** `onServed` receives the heads that were offered, and the one that is served. */
  constructor(options: FirstHeadsOptions, onServed: (offered: readonly OfferedHead[], served: OfferedHead) => void) {
    this.#options = options;
    this.#onServed = onServed;
  }

  /** Collects the first head of each node. Serves one when all have reported, or after FIRST_HEADS_MS. */
  async offer(node: UpstreamNode, head: SealedBlock): Promise<void> {
    const { clock, nodes } = this.#options;
    this.#heads.set(node, head);
    this.#firstMs ??= clock.nowMs();
    const isMissing = nodes.some((other) => !this.#heads.has(other) && other.identity.fault === undefined);
    if (!isMissing) {
      await this.#serve();
    } else if (this.#waiting === undefined) {
      this.#serveAfter(FIRST_HEADS_MS);
    }
  }

  #serveAfter(forMs: number): void {
    const { clock, signal } = this.#options;
    const waiting = new AbortController();
    this.#waiting = waiting;
    void clock
      .sleep(forMs, AbortSignal.any([signal, waiting.signal]))
      // An abort ends the sleep too: whoever aborted it serves.
      .then(() => (waiting.signal.aborted ? undefined : this.#serve()))
      // The next head tries again.
      .catch(() => undefined);
  }

  /** Whether one origin alone has reported, and two others that can be connected to may report yet. */
  #isLone(offered: readonly OfferedHead[]): boolean {
    const others = this.#options.nodes.filter(
      ({ isConnectable, identity }) => isConnectable && identity.fault?.kind !== "wrongChain",
    );
    return (
      new Set(offered.map(({ node }) => node.origin)).size === 1 && new Set(others.map(({ origin }) => origin)).size > 2
    );
  }

  async #serve(): Promise<void> {
    const { canonical, selection, agree, clock, nodes, signal } = this.#options;
    const offered = nodes.flatMap((node) => {
      const head = this.#heads.get(node);
      return node.identity.isIdentified && head !== undefined ? [{ node, head }] : [];
    });
    this.#waiting?.abort();
    this.#waiting = undefined;
    if (canonical.ring !== undefined || offered.length === 0 || signal.aborted) {
      return;
    }
    const loneMs = (this.#firstMs ?? 0) + FIRST_LONE_MS - clock.nowMs();
    if (loneMs > 0 && this.#isLone(offered)) {
      // Connections may be refused meanwhile.
      this.#serveAfter(Math.min(loneMs, FIRST_HEADS_MS));
      return;
    }
    const origins = new Set(offered.map(({ node }) => node.origin));
    const late = new AbortController();
    void clock.sleep(FIRST_HEADS_MS, AbortSignal.any([signal, late.signal])).then(() => late.abort());
    const agreed = await findAgreedHead(offered, requiredOrigins(agree, origins.size), late.signal);
    late.abort();
    const first = agreed ?? offered[0];
    if (first === undefined || canonical.ring !== undefined) {
      return;
    }
    if (agreed !== undefined && origins.size > 1) {
      selection.serve(first.node, { blocks: [first.head], joined: true, isAgreed: true }, undefined);
    } else {
      await selection.offerHead(first.node, first.head);
    }
    this.#onServed(offered, first);
  }
}

export interface DetachedHeadsOptions extends FirstHeadsOptions {
  readonly identity: Pick<ChainIdentity, "verify">;
  readonly blockTimeMs: () => number;
}

/** Period of the search for a block that enough origins have. */
const PERIOD_MS = 1_000;
/** The period while these origins lag behind the ring. */
const BEHIND_PERIOD_MS = 10_000;
/** A block of this age is the newest one of a chain. An origin that synchronises has older ones. */
const FRESH_SECONDS = 30;
const FRESH_BLOCKS = 3;
/** The path from a fresh block to the ring is not longer: the chain would have more than 10 blocks in a second. */
const MAX_PATH_BLOCKS = 300n;
/** A node that does not answer holds the served head for this time: the head would go back for one failed request. */
const UNANSWERED_MS = 60_000;

/** Serves a head that enough origins have although it does not link to the ring. */
export class DetachedHeads {
  readonly #options: DetachedHeadsOptions;
  readonly #origins: FollowedOrigins;
  #nextMs = Number.NEGATIVE_INFINITY;
  /** Time since which a node has not answered whether a lower head is an ancestor of the served one. */
  #unansweredMs: number | undefined;

  constructor(options: DetachedHeadsOptions, origins: FollowedOrigins) {
    this.#options = options;
    this.#origins = origins;
  }

  /** Whether enough origins have heads that do not link to the ring, and they were not read lately. */
  isDue(ring: BlockRing): boolean {
    return this.#options.clock.nowMs() >= this.#nextMs && this.#required(ring) !== undefined;
  }

  /** Returns the heads that were read if one of them was served. */
  async serve(ring: BlockRing): Promise<readonly OfferedHead[]> {
    try {
      return await this.#serve(ring);
    } finally {
      this.#nextMs = Math.max(this.#nextMs, this.#options.clock.nowMs() + PERIOD_MS);
    }
  }

  /** Returns how many origins must have a head that does not link to the ring. Undefined if fewer have one. */
  #required(ring: BlockRing): number | undefined {
    const { nodes, voters } = this.#origins.detached(ring);
    const required = requiredOrigins(this.#options.agree, voters);
    return new Set(nodes.map(({ origin }) => origin)).size < required ? undefined : required;
  }

  async #serve(ring: BlockRing): Promise<readonly OfferedHead[]> {
    const { canonical, selection, identity, clock, signal } = this.#options;
    const { nodes } = this.#origins.detached(ring);
    const required = this.#required(ring);
    if (required === undefined) {
      return [];
    }
    // The votes may have changed while nodes were read.
    const decides = (): boolean => canonical.ring === ring && this.#required(ring) === required;
    const offered = await Promise.all(nodes.map((node) => readOffered(node, signal)));
    const known = offered.filter((each) => each !== undefined);
    const [only] = known;
    if (required === 1) {
      const isServed =
        only !== undefined && (await selection.offerHead(only.node, only.head, { origin: only.node.origin, decides }));
      return isServed && canonical.ring !== ring ? known : [];
    }
    const agreed = await findAgreedHead(known, required, signal);
    if (agreed === undefined) {
      return [];
    }
    if (await this.#isBehind(agreed.head.block, ring, nodes)) {
      this.#nextMs = clock.nowMs() + BEHIND_PERIOD_MS;
      return [];
    }
    const outcome = await identity.verify(agreed.node);
    if (!decides() || outcome.kind === "other" || outcome.kind === "unknown") {
      return [];
    }
    const genesis = outcome.kind === "reset" ? { genesis: outcome.genesis } : {};
    const path = { blocks: [agreed.head], joined: false, isAgreed: true, ...genesis };
    return selection.serve(agreed.node, path, ring) ? known : [];
  }

  /** Whether a block is an ancestor of the ring: its nodes lag. */
  async #isBehind(block: RingBlock, ring: BlockRing, nodes: readonly UpstreamNode[]): Promise<boolean> {
    const { signal, blockTimeMs } = this.#options;
    if (block.number >= ring.oldest) {
      return ring.at(block.number)?.hash === block.hash;
    }
    const others = this.#options.nodes.filter((node) => node.identity.isIdentified && !nodes.includes(node));
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
