import type { Clock } from "../core/clock.ts";
import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { hashAt, headOf, isOnChain, type NodeChain, rejoin } from "./announcedBlocks.ts";
import type { BlockRing } from "./blockRing.ts";
import { isHeld, UNCONNECTED_MS, type Voter } from "./decideHead.ts";
import type { HeadReporter } from "./headReporter.ts";

/** A node's newest block. */
export interface OfferedHead {
  readonly node: UpstreamNode;
  readonly head: SealedBlock;
}

/** One node's head, as far as it is known. */
interface FollowedHead {
  readonly node: UpstreamNode;
  readonly rank: number;
  /** Undefined while the node's head does not link to the ring. */
  chain: NodeChain | undefined;
  /** The node's head, if it does not link to the ring. */
  detached: SealedBlock | undefined;
  /** Time of the last change of the head, and of the last announcement of the head of `chain`. */
  newHeadMs: number;
  confirmedMs: number;
  /** Agreed blocks in a row that the node contradicted. */
  contradictions: number;
  /** While the heads of the node do not count. An abort ends that. */
  excluded: AbortController | undefined;
  /** Time since which no connection to the node can be opened. */
  unconnectedMs: number | undefined;
}

/** A node may lag behind its own head for this time: one machine of it may be behind another. */
const MACHINES_DIFFER_MS = 5_000;
/** Rule 8. Heads of a node are excluded after this number of contradicted blocks in a row. */
const MAX_CONTRADICTIONS = 3;
const EXCLUDED_MS = 300_000;

const headHashesOf = ({ chains }: Voter): readonly Hash[] => chains.map((chain) => headOf(chain).hash);

/** Returns the later of two times; undefined if one is. */
const latest = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? undefined : Math.max(one, other);

export interface FollowedOriginsOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** All nodes of the chain, the preferred ones first. */
  readonly nodes: readonly UpstreamNode[];
  readonly reporter: Pick<HeadReporter, "onExcluded">;
}

/** The newest blocks of each node, and which origins have a vote. */
export class FollowedOrigins {
  readonly #options: FollowedOriginsOptions;
  readonly #heads: ReadonlyMap<UpstreamNode, FollowedHead>;
  /** Origins without a vote, with the time when they lost it, and the head that was served then. */
  readonly #lagging = new Map<string, { readonly sinceMs: number; readonly served: Hash }>();

  constructor(options: FollowedOriginsOptions) {
    this.#options = options;
    this.#heads = new Map(
      options.nodes.map((node, rank) => [
        node,
        {
          node,
          rank,
          chain: undefined,
          detached: undefined,
          newHeadMs: Number.NEGATIVE_INFINITY,
          confirmedMs: Number.NEGATIVE_INFINITY,
          contradictions: 0,
          excluded: undefined,
          unconnectedMs: undefined,
        },
      ]),
    );
  }

  chainOf(node: UpstreamNode): NodeChain | undefined {
    return this.#heads.get(node)?.chain;
  }

  chains(): readonly NodeChain[] {
    return [...this.#heads.values()].flatMap(({ chain }) => (chain === undefined ? [] : [chain]));
  }

  isExcluded(node: UpstreamNode): boolean {
    return this.#heads.get(node)?.excluded !== undefined;
  }

  /** Whether a head is one that the node left behind: a machine of the node lags behind another one. */
  isOlderHead(node: UpstreamNode, head: BlockId, ring: BlockRing): boolean {
    const { chain, confirmedMs = 0 } = this.#heads.get(node) ?? {};
    return (
      chain !== undefined &&
      head.number < headOf(chain).number &&
      isOnChain(chain, head, ring) &&
      this.#options.clock.nowMs() - confirmedMs < MACHINES_DIFFER_MS
    );
  }

  /** Records a node's head and the blocks between it and the ring. */
  record(node: UpstreamNode, chain: NodeChain): void {
    this.#update(node, headOf(chain), { chain, detached: undefined });
  }

  /** Replaces each chain by one that begins at the same block. */
  correct(correct: (chain: NodeChain) => NodeChain): void {
    for (const followed of this.#heads.values()) {
      followed.chain = followed.chain && correct(followed.chain);
    }
  }

  /** Records a head that does not link to the ring. */
  recordDetached(node: UpstreamNode, head: SealedBlock): void {
    this.#update(node, head.block, { chain: undefined, detached: head });
  }

  /** Returns the heads that do not link to the ring. */
  unlinked(): readonly OfferedHead[] {
    return this.#voting().flatMap(({ node, detached: head }) => (head === undefined ? [] : [{ node, head }]));
  }

  /**
   * Returns the heads that do not link to the ring and may decide, and the number of origins that decide about them. An origin that
   * has lost its vote decides too, if it goes on.
   */
  detached(ring: BlockRing): { readonly heads: readonly OfferedHead[]; readonly voters: number } {
    const voting = new Set(this.voters(ring).map(({ name }) => name));
    const isGoingOn = (node: UpstreamNode): boolean =>
      (this.#heads.get(node)?.newHeadMs ?? 0) > (this.#lagging.get(node.origin)?.sinceMs ?? Number.POSITIVE_INFINITY);
    const heads = this.unlinked().filter(({ node }) => voting.has(node.origin) || isGoingOn(node));
    return { heads, voters: new Set([...voting, ...heads.map(({ node }) => node.origin)]).size };
  }

  /** Applies a change of the ring to all chains. */
  rejoin(before: BlockRing, ring: BlockRing): void {
    for (const followed of this.#heads.values()) {
      if (followed.chain !== undefined) {
        followed.chain = rejoin(followed.chain, before, ring);
      }
    }
  }

  /** Rule 8. Counts the nodes that contradict a block that a majority agreed on, and excludes those that do so again and again. */
  excludeContradicting({ number, hash }: BlockId, ring: BlockRing): void {
    for (const followed of this.#voting()) {
      const own = followed.chain && hashAt(followed.chain, number, ring);
      if (own === hash) {
        followed.contradictions = 0;
      } else if (own !== undefined) {
        followed.contradictions += 1;
        this.#exclude(followed);
      }
    }
  }

  /** Rule 8. Ends the exclusion of a node if no other one can be connected to. Returns whether the heads of the node do not count. */
  isIgnored(node: UpstreamNode): boolean {
    const followed = this.#heads.get(node);
    if (followed?.excluded !== undefined && !this.#voting().some((other) => other.node.isConnectable)) {
      followed.excluded.abort();
      followed.excluded = undefined;
    }
    return followed?.excluded !== undefined;
  }

  /** Rule 3. Takes the vote of an origin until it has a later served head. */
  setLagging(origin: string, { latest }: BlockRing): void {
    this.#lagging.set(origin, { sinceMs: this.#options.clock.nowMs(), served: latest.hash });
  }

  /** Rule 3. Returns the origins with a vote. One that lags has it again with the served head, or, if no voter has that, with a voter's. */
  voters(ring: BlockRing): readonly Voter[] {
    const all = this.#all();
    const voting = all.filter((voter) => !this.#isLagging(voter, ring));
    const heads = new Set(isHeld(voting, ring) ? [] : voting.flatMap(headHashesOf));
    const voters = all.filter((voter) => voting.includes(voter) || headHashesOf(voter).some((hash) => heads.has(hash)));
    for (const { name } of voters) {
      this.#lagging.delete(name);
    }
    return voters;
  }

  /** Rule 4. Returns the origins to which connections can be opened, with or without a vote. */
  connected(): ReadonlySet<string> {
    const nodes = [...this.#heads.keys()].filter(
      ({ identity, isConnectable }) => identity.isIdentified && isConnectable,
    );
    return new Set(nodes.map(({ origin }) => origin));
  }

  /** Rule 9. Returns one node of each origin that can be connected to, with or without a vote, if its head links to the ring. */
  reporters(): readonly UpstreamNode[] {
    const linked = this.#voting().filter(
      ({ node, chain }) => node.isConnectable && !node.isResting && chain !== undefined,
    );
    return [...new Map(linked.toReversed().map(({ node }) => [node.origin, node])).values()];
  }

  #update(node: UpstreamNode, head: BlockId, next: Pick<FollowedHead, "chain" | "detached">): void {
    const followed = this.#heads.get(node);
    if (followed === undefined) {
      return;
    }
    const nowMs = this.#options.clock.nowMs();
    const known = followed.chain ? headOf(followed.chain) : followed.detached?.block;
    if (known?.hash !== head.hash) {
      followed.newHeadMs = nowMs;
    }
    followed.confirmedMs = nowMs;
    Object.assign(followed, next);
  }

  /** Returns the time since which no connection to the node can be opened, as far as it was noticed. */
  #unconnectedMs(followed: FollowedHead): number | undefined {
    followed.unconnectedMs = followed.node.isConnectable
      ? undefined
      : (followed.unconnectedMs ?? this.#options.clock.nowMs());
    return followed.unconnectedMs;
  }

  /** Returns all origins whose heads count, with or without a vote. */
  #all(): readonly Voter[] {
    const voters = new Map<string, Voter>();
    for (const followed of this.#voting()) {
      const { node, rank, chain, newHeadMs } = followed;
      const { origin: name } = node;
      const chains = chain === undefined ? [] : [chain];
      const other = voters.get(name);
      const unconnectedMs = this.#unconnectedMs(followed);
      voters.set(name, {
        name,
        rank: Math.min(rank, other?.rank ?? rank),
        unconnectedMs: other === undefined ? unconnectedMs : latest(unconnectedMs, other.unconnectedMs),
        newHeadMs: Math.max(newHeadMs, other?.newHeadMs ?? newHeadMs),
        chains: [...(other?.chains ?? []), ...chains],
      });
    }
    return [...voters.values()];
  }

  /** Rule 2. The nodes whose heads count. Of a node's state, only another chain and an unknown one matter, and no connection for 2 s. */
  #voting(): readonly FollowedHead[] {
    const known = [...this.#heads.values()].filter(
      ({ node, newHeadMs, excluded }) =>
        node.identity.isIdentified && excluded === undefined && newHeadMs !== Number.NEGATIVE_INFINITY,
    );
    const nowMs = this.#options.clock.nowMs();
    const live = known.filter((followed) => nowMs - (this.#unconnectedMs(followed) ?? nowMs) < UNCONNECTED_MS);
    return live.length > 0 ? live : known;
  }

  /** Rule 3. An origin that lags has a vote again once it has a new served head, or announces a block above or in place of it. */
  #isLagging({ name, chains, newHeadMs }: Voter, ring: BlockRing): boolean {
    const lost = this.#lagging.get(name);
    if (lost === undefined) {
      return false;
    }
    const { latest } = ring;
    const hasServedHead = latest.hash !== lost.served && chains.some((chain) => isOnChain(chain, latest, ring));
    const isNew = newHeadMs > lost.sinceMs;
    const contradicts = chains.some(({ base, blocks }) => blocks.length > 0 && base.number < latest.number);
    const isAbove = chains.some((chain) => headOf(chain).number > latest.number);
    return !(hasServedHead || (isNew && (contradicts || isAbove)));
  }

  #exclude(followed: FollowedHead): void {
    const origins = new Set(this.#voting().map(({ node }) => node.origin));
    if (followed.contradictions < MAX_CONTRADICTIONS || origins.size <= 1) {
      return;
    }
    const { clock, signal, reporter } = this.#options;
    const excluded = new AbortController();
    followed.contradictions = 0;
    followed.excluded = excluded;
    reporter.onExcluded(followed.node, true);
    void clock.sleep(EXCLUDED_MS, AbortSignal.any([signal, excluded.signal])).then(() => {
      if (followed.excluded === excluded) {
        followed.excluded = undefined;
      }
      reporter.onExcluded(followed.node, false);
    });
  }
}
