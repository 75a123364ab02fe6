import type { BlockId, Heads, RingBlock } from "../chain/heads.ts";
import { readBlock, readLinked } from "./blockReads.ts";
import { type Canonical, classify } from "./canonical.ts";
import type { ChainIdentity, IdentityCase } from "./chainIdentity.ts";
import type { Clock } from "./clock.ts";
import { readHeadEvidence } from "./headEvidence.ts";
import { findPath, type Path } from "./path.ts";
import type { Ring } from "./ring.ts";
import type { SealedBlock } from "./sealedBlock.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface HeadJoinOptions {
  readonly canonical: Canonical;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly identity: Pick<ChainIdentity, "verify" | "judge" | "reset">;
  /** The nodes whose heads are followed. */
  readonly nodes: () => readonly UpstreamNode[];
  /** A node is so far below what is served that its blocks cannot be compared. */
  readonly onUnknowable: (node: UpstreamNode) => void;
  /** A node's head does not link to what is served, and nothing confirms it. */
  readonly onRejected: (node: UpstreamNode, head: RingBlock) => void;
  /** A served head is replaced by an older one because no node has it any more. */
  readonly onWithdrawn: (head: RingBlock) => void;
}

/** While blocks were read, another node's head may have been served: then it is decided again. */
const TRIES = 3;
const GENESIS_PERIOD_MS = 60_000;
/** A node that disagrees with what is served is checked for another chain so often, beside the check of all nodes. */
const DISAGREEING_PERIOD_MS = 5_000;
/** A head that nothing confirms is served if this long no other is offered: a reorganisation below the whole ring. */
const UNCONFIRMED_MS = 30_000;
/** So far below its newest block every node still has blocks. */
const LINKED_BLOCKS = 64n;
/** A head that did not link may be withdrawn this long; longer if another node contradicts it. */
const TRIAL_MS = 60_000;
/** So long its node must lack a head before it is withdrawn: one machine of a node may be behind another. */
const LOST_MS = 5_000;
const LOST_ON_TRIAL_MS = 2_000;

/** A head that was served although it does not link to the ring before it. */
interface Trial {
  /** What was served before; undefined if nothing was. */
  readonly ring: Ring | undefined;
  readonly sinceMs: number;
}

type Decision = Path | "unchanged" | undefined;

const atTop = (ring: Ring, number: bigint): SealedBlock[] => {
  const block = ring.at(number);
  return block === undefined ? [] : [{ block, header: ring.header(number) }];
};

const has = async (node: UpstreamNode, { number, hash }: BlockId, signal: AbortSignal): Promise<boolean | undefined> =>
  readBlock(node, number, signal).then(
    (found) => found?.block.hash === hash,
    () => undefined,
  );

/** Decides which node's newest block is served: the highest; a lower or other one only if the chain itself has changed. */
export class HeadJoin {
  readonly #options: HeadJoinOptions;
  #leader: UpstreamNode | undefined;
  #trial: Trial | undefined;
  #genesisReadMs = Number.NEGATIVE_INFINITY;
  /** Since when the leader lacks the served head. */
  #lostSinceMs: number | undefined;
  /** Since when only heads are offered that nothing confirms. */
  #unconfirmedSinceMs: number | undefined;
  readonly #verifiedMs = new WeakMap<UpstreamNode, number>();

  constructor(options: HeadJoinOptions) {
    this.#options = options;
  }

  /** The node whose head is served. */
  get leader(): UpstreamNode | undefined {
    return this.#leader?.identified ? this.#leader : undefined;
  }

  /** Serves a node's newest block if it should be. False if the blocks between could not be read, or do not fit. */
  async join(node: UpstreamNode, head: SealedBlock): Promise<boolean> {
    const { canonical, clock, identity } = this.#options;
    for (let attempt = 1; attempt <= TRIES; attempt += 1) {
      const base = canonical.ring;
      const path = await this.#decide(node, head);
      if (path === "unchanged") return true;
      if (!node.identified) return false;
      if (path && canonical.ring === base) {
        const [lowest] = path.blocks;
        const genesis = lowest?.block.number === 0n ? lowest.block.hash : path.genesis;
        // First, so that who is told of the new head already keeps under the new chain's keys.
        if (genesis) identity.reset(genesis);
        if (!path.joined) this.#trial = genesis ? undefined : { ring: base, sinceMs: clock.nowMs() };
        else if (path.onto) this.#trial = undefined;
        this.#leader = node;
        this.#lostSinceMs = undefined;
        this.#unconfirmedSinceMs = undefined;
        return canonical.extend(base, path);
      }
    }
    return false;
  }

  /** What to serve in place of the ring; `unchanged` for nothing, undefined if it cannot be decided yet. */
  async #decide(node: UpstreamNode, head: SealedBlock): Promise<Decision> {
    const { ring, heads } = this.#options.canonical;
    if (!ring || !heads) return { blocks: [head], joined: false };
    const headCase = classify(ring, head);
    if (headCase === "known") return this.#decideKnown(node, head, ring);
    if (headCase === "unknowable") return this.#decideBelow(node, head, ring);
    if (headCase === "conflict") return this.#decideConflict(node, head, { ring, heads });
    return this.#route(node, head, ring);
  }

  /** The head is in the ring: if its node led, it may have lost what is served. */
  async #decideKnown(node: UpstreamNode, { block }: SealedBlock, ring: Ring): Promise<Decision> {
    this.#unconfirmedSinceMs = undefined;
    if (node !== this.#leader) {
      if (this.#trial && block.number > (this.#trial.ring?.latest.number ?? -1n)) this.#trial = undefined;
      return "unchanged";
    }
    if (block.number === ring.latest.number) {
      this.#lostSinceMs = undefined;
      return "unchanged";
    }
    const others = this.#others(node);
    if (others.length === 0 || !(await this.#isLost(ring.latest, LOST_MS))) return "unchanged";
    const linked = others.filter((other) => isLinked(other, ring)).map((other) => other.head ?? 0n);
    const [top] = [...linked, block.number].sort((a, b) => Number(b - a));
    if (linked.length === 0 || top === undefined || top === ring.latest.number) return "unchanged";
    this.#options.onWithdrawn(ring.latest);
    return { blocks: atTop(ring, top), joined: true };
  }

  /** Another block counts only from the node whose head is served, and only if that node has left what it said before. */
  async #decideConflict(
    node: UpstreamNode,
    head: SealedBlock,
    { ring, heads }: { readonly ring: Ring; readonly heads: Heads },
  ): Promise<Decision> {
    const { signal } = this.#options;
    if (!this.#speaks(node) || (await readBlock(node, heads.latest.number, signal))?.block.hash === heads.latest.hash) {
      await this.#verifyDisagreeing(node);
      return this.#fallBack(node, head, ring);
    }
    // A new branch is announced block by block; its end alone is served, so that the head does not go down and up.
    const end = await readBlock(node, "latest", signal);
    return this.#route(node, end && end.block.number > head.block.number ? end : head, ring);
  }

  /** The head is below the ring: a node that syncs, a chain that began again, or what is served was a lie. */
  async #decideBelow(node: UpstreamNode, head: SealedBlock, ring: Ring): Promise<Decision> {
    const { clock, signal, identity, onUnknowable } = this.#options;
    const back = await this.#fallBack(node, head, ring);
    if (back !== "unchanged") return back;
    const nowMs = clock.nowMs();
    if (!this.#speaks(node)) {
      await this.#verifyDisagreeing(node);
      return "unchanged";
    }
    // Rarely, as a node that syncs is there for hours.
    if (nowMs - this.#genesisReadMs < GENESIS_PERIOD_MS) return "unchanged";
    this.#genesisReadMs = nowMs;
    const evidence = await readHeadEvidence(node, ring, head, signal);
    const outcome = await identity.judge(node, evidence.identity);
    if (outcome.kind === "reset" && evidence.hasHead) {
      return { blocks: [head], joined: false, genesis: outcome.genesis };
    }
    if (outcome.kind === "same") onUnknowable(node);
    return "unchanged";
  }

  /** How the head links to the ring; below the ring's newest block only after a check of the node's chain. */
  async #route(node: UpstreamNode, head: SealedBlock, ring: Ring): Promise<Decision> {
    const { signal, identity } = this.#options;
    let outcome: IdentityCase | undefined;
    const path = await findPath(ring, head, async (range, hash) => {
      if (range.to <= ring.latest.number) {
        outcome ??= await identity.verify(node);
        if (outcome.kind === "other" || outcome.kind === "unknown") return [];
      }
      return readLinked(node, range, hash, signal);
    });
    if (path?.joined) return path;
    if (outcome?.kind === "other") return "unchanged";
    const back = await this.#fallBack(node, head, ring);
    if (back !== "unchanged") return back;
    if (path) return this.#confirm(node, head, { ring, path });
    await this.#verifyDisagreeing(node);
    return this.#reject(node, head);
  }

  /** A head that does not link to the ring: served only if something confirms that it is of this chain. */
  async #confirm(
    node: UpstreamNode,
    head: SealedBlock,
    { ring, path }: { readonly ring: Ring; readonly path: Path },
  ): Promise<Decision> {
    const { signal, identity, clock } = this.#options;
    const evidence = await readHeadEvidence(node, ring, head, signal);
    const outcome = await identity.judge(node, evidence.identity);
    if (outcome.kind === "other") return "unchanged";
    if (outcome.kind === "reset") return evidence.hasHead ? { ...path, genesis: outcome.genesis } : undefined;
    if (!evidence.hasHead) return this.#reject(node, head);
    if (evidence.hasRingBlock && evidence.hasMiddle) return path;
    const others = this.#others(node);
    const [lowest = head] = path.blocks;
    const parent = { number: lowest.block.number - 1n, hash: lowest.block.parentHash };
    const confirmed = await Promise.all(
      others.flatMap((other) => [head.block, parent].map((block) => has(other, block, signal))),
    );
    if (confirmed.includes(true)) return path;
    // Soon after the start the ring is short.
    const isFirst = this.#trial !== undefined && this.#trial.ring === undefined;
    if (isFirst && others.length === 0 && lowest.block.number <= ring.oldest) return path;
    if (others.some((other) => isLinked(other, ring))) return this.#reject(node, head);
    this.#unconfirmedSinceMs ??= clock.nowMs();
    return clock.nowMs() - this.#unconfirmedSinceMs < UNCONFIRMED_MS ? this.#reject(node, head) : path;
  }

  /** What was served before, if what is served now did not link to it and its node does not have it any more. */
  async #fallBack(node: UpstreamNode, head: SealedBlock, ring: Ring): Promise<Decision> {
    const { clock, signal, onWithdrawn } = this.#options;
    const trial = this.#trial;
    if (!trial) return "unchanged";
    if (clock.nowMs() - trial.sinceMs > TRIAL_MS && this.#others(this.#leader).length === 0) {
      this.#trial = undefined;
      return "unchanged";
    }
    const isUntrue = (await this.#isInvented(node, head, ring)) || (await this.#isLost(ring.latest, LOST_ON_TRIAL_MS));
    if (!isUntrue) return "unchanged";
    if (!trial.ring) {
      onWithdrawn(ring.latest);
      return { blocks: [head], joined: false };
    }
    const { ring: onto } = trial;
    if (classify(onto, head) === "known") {
      onWithdrawn(ring.latest);
      return { blocks: atTop(onto, onto.latest.number), joined: true, onto };
    }
    const path = await findPath(onto, head, (range, hash) => readLinked(node, range, hash, signal));
    if (!path?.joined) return "unchanged";
    onWithdrawn(ring.latest);
    return { ...path, onto };
  }

  /** Whether another node's head is far below and the leader has no block a little below its own. */
  async #isInvented(node: UpstreamNode, { block }: SealedBlock, { latest }: Ring): Promise<boolean> {
    const leader = this.leader;
    const below = latest.number - LINKED_BLOCKS;
    if (leader === undefined || leader === node || !leader.available || below <= block.number) return false;
    return readBlock(leader, below, this.#options.signal).then(
      (found) => found === undefined,
      () => false,
    );
  }

  /** Whether the leader has lacked this block for so long, and no other node has it. A node that has it leads from now on. */
  async #isLost(block: RingBlock, forMs: number): Promise<boolean> {
    const { clock, signal } = this.#options;
    const leader = this.leader;
    const isHeld = leader?.available ? await has(leader, block, signal) : undefined;
    if (isHeld === true) {
      this.#lostSinceMs = undefined;
      return false;
    }
    this.#lostSinceMs ??= clock.nowMs();
    if (clock.nowMs() - this.#lostSinceMs < forMs) return false;
    const others = this.#others(leader);
    const held = await Promise.all(others.map((other) => has(other, block, signal)));
    const holder = others[held.indexOf(true)];
    if (holder) {
      this.#leader = holder;
      this.#lostSinceMs = undefined;
    }
    return holder === undefined;
  }

  #reject(node: UpstreamNode, { block }: SealedBlock): undefined {
    this.#options.onRejected(node, block);
  }

  /** Reads the node's chain id and genesis if that was not done lately. */
  async #verifyDisagreeing(node: UpstreamNode): Promise<void> {
    const { clock, identity } = this.#options;
    const nowMs = clock.nowMs();
    if (nowMs - (this.#verifiedMs.get(node) ?? Number.NEGATIVE_INFINITY) < DISAGREEING_PERIOD_MS) return;
    this.#verifiedMs.set(node, nowMs);
    await identity.verify(node);
  }

  #others(node: UpstreamNode | undefined): readonly UpstreamNode[] {
    return this.#options.nodes().filter((other) => other !== node && other.available);
  }

  #speaks(node: UpstreamNode): boolean {
    return this.#leader === node || !this.leader?.available;
  }
}

/** The node's newest block is in the ring. */
const isLinked = ({ head, headHash }: UpstreamNode, ring: Ring): boolean =>
  head !== undefined && ring.at(head)?.hash === headHash;
