/** The data of the status page, served as `./status.json`. It contains names, but no URL, header or key. */
export interface Status {
  readonly version: string;
  readonly uptimeSeconds: number;
  /** True from SIGTERM on. */
  readonly draining: boolean;
  /** The newest that could be read. Null before. */
  readonly today: TodayStatus | null;
  readonly chains: readonly ChainStatus[];
}

/** The usage of one UTC day in provider units: of all chains, and of all replicas that share Redis. */
export interface TodayStatus {
  readonly day: string;
  /** Calls of clients. */
  readonly calls: number;
  /** Those that needed no call to a node. */
  readonly saved: { readonly calls: number; readonly units: number };
  /** Calls to nodes, those of forebay itself included. */
  readonly spent: { readonly calls: number; readonly units: number };
}

/** Shares from 0 to 1. */
type Shares<Names extends string> = Readonly<Record<Names, number>>;

export interface ChainStatus {
  readonly name: string;
  /** Null until a node has reported it. */
  readonly chainId: number | null;
  /** `agreed`: a majority of several origins has the newest block. `linked`: one origin alone decided. */
  readonly head: "agreed" | "linked" | null;
  readonly latest: HeadStatus | null;
  readonly safe: HeadStatus | null;
  readonly finalized: HeadStatus | null;
  readonly pending: PendingStatus;
  readonly requestsPerSecond: number;
  /** Calls since the start that needed no call to a node, and their price in provider units. */
  readonly saved: { readonly calls: number; readonly units: number };
  /** From 0 to 1; null before the first lookup. */
  readonly hitRatio: number | null;
  readonly knownState: KnownStateStatus;
  /** What is verified of the answers since the start. Null before the first answer. */
  readonly proofs: Shares<"proven" | "checked" | "stated"> | null;
  /** The heads of the responses over HTTP since the start. Null before the first response. */
  readonly heads: Shares<"agreed" | "linked"> | null;
  readonly nodes: readonly NodeStatus[];
  /** Why nodes answer calls that forebay could answer, which costs many units. */
  readonly forwarded: readonly { readonly reason: string; readonly text: string }[];
  /** Up to ten, newest first. */
  readonly flashblocks: readonly FlashblockStatus[];
}

export interface HeadStatus {
  readonly number: number;
  /** Age by the block's own timestamp; null if its header is unknown. */
  readonly ageSeconds: number | null;
}

export interface PendingStatus {
  readonly mode: "live" | "unverified" | "degraded" | "stale" | "native" | "node" | "none";
  readonly number: number | null;
  /** Milliseconds since the last valid message; null without a feed. */
  readonly feedAgeMs: number | null;
}

export interface KnownStateStatus {
  readonly values: number;
  readonly bytes: number;
  /** Share of the reads of state and of the calls that it answered, from 0 to 1. Null before the first one. */
  readonly readShare: number | null;
}

export interface NodeStatus {
  readonly name: string;
  readonly head: number | null;
  readonly lagBlocks: number | null;
  /** True while the node gets no requests. */
  readonly breakerOpen: boolean;
  /** Why it gets none; absent for a node in use. */
  readonly reason?: string;
  /** True while its heads do not count, because most origins have other blocks. */
  readonly headsIgnored: boolean;
  /** Moving average of good responses to the process that follows the chain. Null before the first one. */
  readonly latencyMs: number | null;
  /** Share of the chain's calls to nodes since the start, from 0 to 1. Null before the first one. */
  readonly share: number | null;
  /** Calls since the start that ended with a fault of the node. Errors of requests, and of data that it lacks, do not count. */
  readonly errors: number;
  readonly lastError: { readonly text: string; readonly ageSeconds: number } | null;
  /** Provider units of the calls since the start. */
  readonly units: number;
}

export interface FlashblockStatus {
  readonly number: number;
  /** Position in its block, from 0. */
  readonly index: number;
  readonly transactions: number;
  readonly gasUsed: number;
  readonly ageMs: number;
}
