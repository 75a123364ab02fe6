/** What the status page shows, as `./status.json` carries it. Names only: no URL, header or key ever gets in. */
export interface Status {
  readonly version: string;
  readonly uptimeSeconds: number;
  /** True from SIGTERM on. */
  readonly draining: boolean;
  readonly chains: readonly ChainStatus[];
}

export interface ChainStatus {
  readonly name: string;
  /** Decimal; null before a node told it. */
  readonly chainId: number | null;
  readonly latest: HeadStatus | null;
  readonly safe: HeadStatus | null;
  readonly finalized: HeadStatus | null;
  readonly pending: PendingStatus;
  readonly requestsPerSecond: number;
  /** 0 to 1; null while nothing was looked up. */
  readonly hitRatio: number | null;
  readonly nodes: readonly NodeStatus[];
  /** The last ten at most, newest first. */
  readonly flashblocks: readonly FlashblockStatus[];
}

export interface HeadStatus {
  readonly number: number;
  /** By the block's own timestamp; null where its header is not at hand. */
  readonly ageSeconds: number | null;
}

export interface PendingStatus {
  readonly mode: "live" | "unverified" | "degraded" | "stale" | "native" | "node" | "none";
  readonly number: number | null;
  /** Since the last good message; null without a feed. */
  readonly feedAgeMs: number | null;
}

export interface NodeStatus {
  readonly name: string;
  readonly head: number | null;
  readonly lagBlocks: number | null;
  /** True while the node is not asked. */
  readonly breakerOpen: boolean;
}

export interface FlashblockStatus {
  readonly number: number;
  /** Position in its block, from 0. */
  readonly index: number;
  readonly transactions: number;
  readonly gasUsed: number;
  readonly ageMs: number;
}
