import type { Heads } from "../chain/heads.ts";
import { type Hash, ZERO_HASH } from "../chain/hex.ts";
import { readBlock, readLinked } from "./blockReads.ts";
import { type Canonical, classify } from "./canonical.ts";
import type { Clock } from "./clock.ts";
import { findPath, type Path } from "./path.ts";
import type { SealedBlock } from "./sealedBlock.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface HeadJoinOptions {
  readonly canonical: Canonical;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Of the chain as it is known; `onGenesis` is told another one when the chain has begun anew. */
  readonly genesisHash: () => Hash;
  readonly onGenesis: (hash: Hash) => void;
  /** A node is so far below what is served that its blocks cannot be compared. */
  readonly onUnknowable: (node: UpstreamNode) => void;
}

export interface HeadJoin {
  /** The node whose head is served. */
  readonly leader: UpstreamNode | undefined;
  /** Serves a node's newest block if it should be. False where the blocks between could not be read (yet). */
  join(node: UpstreamNode, head: SealedBlock): Promise<boolean>;
}

/** While blocks were read, another node's head may have been taken: then it is decided again. */
const TRIES = 3;
const GENESIS_PERIOD_MS = 60_000;

/** Decides which node's newest block is served: the highest; a lower or other one only where the chain itself has changed. */
export const createHeadJoin = (options: HeadJoinOptions): HeadJoin => {
  const { canonical, clock, signal, genesisHash, onGenesis } = options;
  let leader: UpstreamNode | undefined;
  let genesisReadMs = Number.NEGATIVE_INFINITY;

  const speaks = (node: UpstreamNode): boolean => leader === node || !leader?.available;

  /** Another block counts only from the node whose head is served, and only if that node has left what it said before. */
  const hasLeft = async (node: UpstreamNode, { latest }: Heads): Promise<boolean> =>
    speaks(node) && (await readBlock(node, latest.number, signal))?.block.hash !== latest.hash;

  /** Where blocks cannot be compared only the genesis block tells whether the chain began anew; undefined where it did not. */
  const otherGenesis = async (node: UpstreamNode): Promise<Hash | undefined> => {
    if (genesisHash() === ZERO_HASH) {
      return undefined;
    }
    const genesis = await readBlock(node, 0n, signal);
    return genesis?.block.hash === genesisHash() ? undefined : genesis?.block.hash;
  };

  /** Far below what is held: asked rarely, as a node that syncs is there for hours. */
  const beganAnew = async (node: UpstreamNode): Promise<Hash | undefined> => {
    const nowMs = clock.nowMs();
    if (!speaks(node) || nowMs - genesisReadMs < GENESIS_PERIOD_MS) {
      return undefined;
    }
    genesisReadMs = nowMs;
    const genesis = await otherGenesis(node);
    if (genesis === undefined) {
      options.onUnknowable(node);
    }
    return genesis;
  };

  /** What to serve in place of `base`; `unchanged` for nothing, undefined where it cannot be told yet. */
  const decide = async (node: UpstreamNode, head: SealedBlock): Promise<Path | "unchanged" | undefined> => {
    const { ring, heads } = canonical;
    const alone: Path = { blocks: [head], joined: false };
    if (!ring || !heads) {
      return alone;
    }
    const headCase = classify(ring, head);
    if (headCase === "known" || (headCase === "conflict" && !(await hasLeft(node, heads)))) {
      return "unchanged";
    }
    if (headCase === "unknowable") {
      const genesis = await beganAnew(node);
      return genesis ? { ...alone, genesis } : "unchanged";
    }
    // A new branch is announced block by block; its end alone is served, so that the head does not go down and up.
    const end = headCase === "conflict" ? await readBlock(node, "latest", signal) : undefined;
    const top = end && end.block.number > head.block.number ? end : head;
    const path = await findPath(ring, top, (range, hash) => readLinked(node, range, hash, signal));
    const genesis = path && !path.joined ? await otherGenesis(node) : undefined;
    return path && genesis ? { ...path, genesis } : path;
  };

  return {
    get leader() {
      return leader;
    },
    join: async (node, head) => {
      for (let attempt = 1; attempt <= TRIES; attempt += 1) {
        const base = canonical.ring;
        const path = await decide(node, head);
        if (path === "unchanged") {
          return true;
        }
        if (path && canonical.ring === base) {
          const [lowest] = path.blocks;
          const genesis = lowest?.block.number === 0n ? lowest.block.hash : path.genesis;
          // First, so that who is told of the new head already keeps under the new chain's keys.
          if (genesis) {
            onGenesis(genesis);
          }
          leader = node;
          return canonical.extend(base, path);
        }
      }
      return false;
    },
  };
};
