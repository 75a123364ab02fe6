import type { ChainStatus, HeadStatus, NodeStatus, PendingStatus, Status } from "../admin/status.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { View } from "../core/view.ts";
import type { ServedChain } from "./chainRuntime.ts";

/** A counter with its values by labels. */
export interface Counted {
  get(): Promise<{ readonly values: readonly Value[] }>;
}

export interface StatusOptions {
  readonly version: string;
  readonly metrics: Readonly<Record<"requests" | "cacheLookups" | "savedCalls" | "savedUnits", Counted>>;
  chains(): readonly ServedChain[];
  isDraining(): boolean;
}

/** The counters are read at most once in this time, whatever the number of viewers. */
const MIN_PERIOD_MS = 900;

const HITS: ReadonlySet<unknown> = new Set(["memory", "redis", "absent"]);

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

const viewOf = ({ views, upstreams }: ServedChain): View | undefined =>
  upstreams.heads.current() === undefined ? undefined : views.view();

const pendingStatus = ({ views }: ServedChain, view: View | undefined): PendingStatus => {
  const pending = view?.pending;
  const isSealed = pending?.mode === "native";
  const number = pending?.newest?.number ?? (isSealed ? view?.heads.latest.number : undefined);
  return {
    mode: pending?.mode ?? "none",
    number: number === undefined ? null : Number(number),
    feedAgeMs: views.flashblocks.ageMs ?? null,
  };
};

const nodeStatus = ({ upstreams }: ServedChain, heads: Heads | undefined): NodeStatus[] =>
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

  #chainStatus(chain: ServedChain, { lookups, hits, savedCalls, savedUnits }: Counts): ChainStatus {
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
