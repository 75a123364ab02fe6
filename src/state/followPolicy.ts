import type { Probation } from "./probation.ts";
import type { StateKey } from "./stateKey.ts";

/** One read of a state value at a sealed block within the newest 256. */
export interface CountedRead {
  readonly method: string;
  readonly key: StateKey;
  /** Number of the block whose state is read. */
  readonly block: bigint;
  /** Whether the state cache had the value, at once or after a wait. */
  readonly isHit: boolean;
  /** The client that reads. */
  readonly client?: string;
  /** The units of the read. Default: those of its method. */
  readonly units?: number | undefined;
}

/** The agreements that a source still needs. */
export type ProbationLeft = Pick<Probation, "blocksLeft" | "valuesLeft">;

/** Decides whether write sets are worth the provider units that they cost. Free sources are always followed. */
export interface FollowPolicy {
  /**
   * Whether to read the write set of a new block for this number of units. Called once for each paid source and head.
   * `probation`: until it is over, the source saves nothing.
   */
  shouldFollow(unitsPerBlock: number, probation?: ProbationLeft): boolean;
  /** Whether to read the write sets of blocks that were missed during a pause. If not, known values are dropped. */
  shouldCatchUp(missedBlocks: number, unitsPerBlock: number): boolean;
  /** Called with each read, also while no block is followed. It is on the path of a cache hit. */
  onRead(read: CountedRead): void;
}

/** Follows free sources alone. */
export const freeSourcesOnly: FollowPolicy = {
  shouldFollow: () => false,
  shouldCatchUp: () => false,
  onRead: () => undefined,
};

/** Follows every source: the operator named it. */
export const everySource: FollowPolicy = {
  shouldFollow: () => true,
  shouldCatchUp: () => false,
  onRead: () => undefined,
};
