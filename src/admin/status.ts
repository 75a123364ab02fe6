import type { BlockId, Heads } from "../core/heads.ts";
import type { View } from "../core/view.ts";

/** The data of the status page, served as `./status.json`. It contains names, but no URL, header or key. */
export interface Status {
  readonly version: string;
  readonly uptimeSeconds: number;
  /** True from SIGTERM on. */
  readonly draining: boolean;
  readonly chains: readonly ChainStatus[];
}

export interface ChainStatus {
  readonly name: string;
  /** Null until a node has reported it. */
  readonly chainId: number | null;
  /** `agreed`: a majority of several origins has the newest block. `linked`: one origin's word decided. */
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
}

export interface FlashblockStatus {
  readonly number: number;
  /** Position in its block, from 0. */
  readonly index: number;
  readonly transactions: number;
  readonly gasUsed: number;
  readonly ageMs: number;
}

/** A chain, as far as its status concerns it. */
export interface StatusChain {
  readonly name: string;
  readonly upstreams: {
    readonly genesis: { readonly chainId: bigint };
    readonly heads: { current(): Heads | undefined; isExcluded(node: string): boolean };
    readonly nodes: readonly {
      readonly name: string;
      readonly head: bigint | undefined;
      readonly available: boolean;
      readonly unusedReason: string | undefined;
    }[];
  };
  readonly views: {
    view(): View;
    readonly flashblocks: { readonly ageMs: number | undefined; list(): readonly FlashblockStatus[] };
  };
  readonly forwarded: { readonly list: ChainStatus["forwarded"] };
}

/** A counter with its values by labels. */
export interface Counted {
  get(): Promise<{ readonly values: readonly Value[] }>;
}

export interface StatusOptions {
  readonly version: string;
  readonly metrics: Readonly<Record<"requests" | "cacheLookups" | "savedCalls" | "savedUnits", Counted>>;
  chains(): readonly StatusChain[];
  isDraining(): boolean;
}

/** The counters are read at most once in this time, whatever the number of viewers. */
const MIN_PERIOD_MS = 900;

const HITS: ReadonlySet<unknown> = new Set(["memory", "disk", "redis", "absent"]);

/** The age is null if the block is older than the block ring. */
const headStatus = (heads: Heads, block: BlockId | undefined): HeadStatus | null => {
  if (block === undefined) {
    return null;
  }
  const timestamp = heads.at(block.number)?.timestamp;
  return {
    number: Number(block.number),
    ageSeconds: timestamp === undefined ? null : Date.now() / 1000 - Number(timestamp),
  };
};

const labelOf = (heads: Heads | undefined): ChainStatus["head"] => {
  if (heads === undefined) {
    return null;
  }
  return heads.isAgreed ? "agreed" : "linked";
};

const viewOf = ({ views, upstreams }: StatusChain): View | undefined =>
  upstreams.heads.current() === undefined ? undefined : views.view();

const pendingStatus = ({ views }: StatusChain, view: View | undefined): PendingStatus => {
  const pending = view?.pending;
  const isSealed = pending?.mode === "native";
  const number = pending?.newest?.number ?? (isSealed ? view?.heads.latest.number : undefined);
  return {
    mode: pending?.mode ?? "none",
    number: number === undefined ? null : Number(number),
    feedAgeMs: views.flashblocks.ageMs ?? null,
  };
};

const nodeStatus = ({ upstreams }: StatusChain, heads: Heads | undefined): NodeStatus[] =>
  upstreams.nodes.map(({ name, head, available, unusedReason }) => ({
    name,
    head: head === undefined ? null : Number(head),
    lagBlocks: head === undefined || heads === undefined ? null : Math.max(0, Number(heads.latest.number - head)),
    breakerOpen: !available,
    ...(unusedReason !== undefined && { reason: unusedReason }),
    headsIgnored: upstreams.heads.isExcluded(name),
  }));

/** Sums per chain at one time. */
interface Counts {
  readonly atMs: number;
  readonly requests: ReadonlyMap<unknown, number>;
  readonly lookups: ReadonlyMap<unknown, number>;
  readonly hits: ReadonlyMap<unknown, number>;
  readonly savedCalls: ReadonlyMap<unknown, number>;
  readonly savedUnits: ReadonlyMap<unknown, number>;
}

export type Value = { readonly labels: Partial<Record<string, string | number>>; readonly value: number };

const byChain = (values: readonly Value[]): ReadonlyMap<unknown, number> => {
  const sums = new Map<unknown, number>();
  for (const { labels, value } of values) {
    sums.set(labels.chain, (sums.get(labels.chain) ?? 0) + value);
  }
  return sums;
};

/** The data of the status page. */
export class StatusReport {
  readonly #options: StatusOptions;
  /** Requests per second, by chain. */
  #rates: ReadonlyMap<unknown, number> = new Map();
  #last: Counts | undefined;

  constructor(options: StatusOptions) {
    this.#options = options;
  }

  /** Returns the JSON text. */
  async read(): Promise<string> {
    const { version, chains, isDraining } = this.#options;
    const counts = await this.#count();
    const status: Status = {
      version,
      uptimeSeconds: Math.round(process.uptime()),
      draining: isDraining(),
      chains: chains().map((chain) => this.#chainStatus(chain, counts)),
    };
    return JSON.stringify(status);
  }

  async #count(): Promise<Counts> {
    const { metrics } = this.#options;
    const nowMs = performance.now();
    if (this.#last !== undefined && nowMs - this.#last.atMs < MIN_PERIOD_MS) {
      return this.#last;
    }
    const [requests, lookups, savedCalls, savedUnits] = await Promise.all([
      metrics.requests.get(),
      metrics.cacheLookups.get(),
      metrics.savedCalls.get(),
      metrics.savedUnits.get(),
    ]);
    const counts = {
      atMs: nowMs,
      requests: byChain(requests.values),
      lookups: byChain(lookups.values),
      hits: byChain(lookups.values.filter(({ labels }) => HITS.has(labels.outcome))),
      savedCalls: byChain(savedCalls.values),
      savedUnits: byChain(savedUnits.values),
    };
    const before = this.#last;
    if (before !== undefined) {
      const seconds = (nowMs - before.atMs) / 1000;
      this.#rates = new Map(
        [...counts.requests].map(([chain, sum]) => [chain, (sum - (before.requests.get(chain) ?? 0)) / seconds]),
      );
    }
    this.#last = counts;
    return counts;
  }

  #chainStatus(chain: StatusChain, { lookups, hits, savedCalls, savedUnits }: Counts): ChainStatus {
    const { name, upstreams, views } = chain;
    const { chainId } = upstreams.genesis;
    const view = viewOf(chain);
    const heads = view?.heads;
    const lookupCount = lookups.get(name) ?? 0;
    return {
      name,
      chainId: chainId === 0n ? null : Number(chainId),
      head: labelOf(heads),
      latest: heads ? headStatus(heads, heads.latest) : null,
      safe: heads ? headStatus(heads, heads.safe) : null,
      finalized: heads ? headStatus(heads, heads.finalized) : null,
      pending: pendingStatus(chain, view),
      requestsPerSecond: this.#rates.get(name) ?? 0,
      saved: { calls: savedCalls.get(name) ?? 0, units: savedUnits.get(name) ?? 0 },
      hitRatio: lookupCount === 0 ? null : (hits.get(name) ?? 0) / lookupCount,
      nodes: nodeStatus(chain, heads),
      forwarded: chain.forwarded.list,
      flashblocks: views.flashblocks.list(),
    };
  }
}
