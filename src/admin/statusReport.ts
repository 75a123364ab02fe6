import { setTimeout as wait } from "node:timers/promises";
import type { BlockId, Heads } from "../core/heads.ts";
import { isNodeFault } from "../core/node.ts";
import { RETRY_RULES } from "../core/retryPolicy.ts";
import type { View } from "../core/view.ts";
import type {
  ChainStatus,
  FlashblockStatus,
  HeadStatus,
  KnownStateStatus,
  NodeStatus,
  PendingStatus,
  Status,
  TodayStatus,
} from "./status.ts";
import {
  readStatusValues,
  type StatusMetrics,
  type StatusValues,
  sumOfValues,
  type Value,
  valuesWith,
} from "./statusValues.ts";

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
      readonly state: { readonly because: string | undefined };
      /** `latencyMs` is 0 before the first response. */
      readonly health: { readonly latencyMs: number };
    }[];
  };
  readonly pending: {
    view(): View;
    readonly flashblocks: { readonly ageMs: number | undefined; list(): readonly FlashblockStatus[] };
  };
  readonly forwarded: { readonly list: ChainStatus["forwarded"] };
}

export interface StatusOptions {
  readonly version: string;
  readonly metrics: StatusMetrics;
  /** Rejects if the usage cannot be read now. */
  readToday(): Promise<TodayStatus>;
  chains(): readonly StatusChain[];
  isDraining(): boolean;
}

/** The counters are read at most once in this time, whatever the number of viewers. */
const MIN_PERIOD_MS = 900;
/** The usage of the day may be in Redis, with a row for each key. It is read at most once in this time. */
const TODAY_PERIOD_MS = 10_000;
const TODAY_WAIT_MS = 500;

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

const viewOf = ({ pending, upstreams }: StatusChain): View | undefined =>
  upstreams.heads.current() === undefined ? undefined : pending.view();

const pendingStatus = ({ pending: { flashblocks } }: StatusChain, view: View | undefined): PendingStatus => {
  const pending = view?.pending;
  const isSealed = pending?.mode === "native";
  const number = pending?.newest?.number ?? (isSealed ? view?.heads.latest.number : undefined);
  return {
    mode: pending?.mode ?? "none",
    number: number === undefined ? null : Number(number),
    feedAgeMs: flashblocks.ageMs ?? null,
  };
};

const lastErrorOf = (times: readonly Value[]): NodeStatus["lastError"] => {
  const [last] = times.toSorted((a, b) => b.value - a.value);
  const kind = last?.labels.outcome;
  // 0 is the time of a fault that has not happened.
  return last === undefined || last.value === 0 || !isNodeFault(kind)
    ? null
    : { text: RETRY_RULES[kind].meaning, ageSeconds: Date.now() / 1000 - last.value };
};

const shareOf = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

/** Returns a function that returns the share of the values with a label. Null if nothing was counted. */
const sharesBy = (label: string, values: readonly Value[]): ((wanted: string) => number) | null => {
  const whole = sumOfValues(values);
  return whole === 0 ? null : (wanted) => sumOfValues(valuesWith(values, label, new Set([wanted]))) / whole;
};

const proofStatus = (values: readonly Value[]): ChainStatus["proofs"] => {
  const share = sharesBy("label", values);
  return share && { proven: share("proven"), checked: share("checked"), stated: share("stated") };
};

const headShares = (values: readonly Value[]): ChainStatus["heads"] => {
  const share = sharesBy("head", values);
  return share && { agreed: share("agreed"), linked: share("linked") };
};

const nodeStatus = (
  { name: chain, upstreams }: StatusChain,
  heads: Heads | undefined,
  counts: StatusValues,
): NodeStatus[] => {
  const allCalls = sumOfValues(counts.of("upstreamCalls", chain));
  return upstreams.nodes.map(({ name, head, available, state, health }) => {
    const { because } = state;
    const valuesOf = (metric: keyof StatusMetrics) => valuesWith(counts.of(metric, chain), "node", new Set([name]));
    return {
      name,
      head: head === undefined ? null : Number(head),
      lagBlocks: head === undefined || heads === undefined ? null : Math.max(0, Number(heads.latest.number - head)),
      breakerOpen: !available,
      ...(because !== undefined && { reason: because }),
      headsIgnored: upstreams.heads.isExcluded(name),
      latencyMs: health.latencyMs === 0 ? null : health.latencyMs,
      share: shareOf(sumOfValues(valuesOf("upstreamCalls")), allCalls),
      errors: sumOfValues(valuesOf("upstreamRequests").filter(({ labels }) => isNodeFault(labels.outcome))),
      lastError: lastErrorOf(valuesOf("upstreamLastError")),
      units: sumOfValues(valuesOf("upstreamUnits")),
    };
  });
};

const knownStateStatus = (chain: string, counts: StatusValues): KnownStateStatus => {
  const lookups = counts.of("stateLookups", chain);
  return {
    values: sumOfValues(counts.of("stateValues", chain)),
    bytes: sumOfValues(counts.of("stateBytes", chain)),
    readShare: shareOf(sumOfValues(valuesWith(lookups, "outcome", new Set(["hit"]))), sumOfValues(lookups)),
  };
};

/** The data of the status page. */
export class StatusReport {
  readonly #options: StatusOptions;
  /** Requests per second, by chain. */
  readonly #rates = new Map<string, number>();
  #last: StatusValues | undefined;
  #today: TodayStatus | null = null;
  #todayDueMs = 0;
  #readingToday: Promise<void> | undefined;

  constructor(options: StatusOptions) {
    this.#options = options;
  }

  /** Returns the JSON text. */
  async read(): Promise<string> {
    const { version, chains, isDraining } = this.#options;
    const [counts, today] = await Promise.all([this.#count(), this.#readToday()]);
    const status: Status = {
      version,
      uptimeSeconds: Math.round(process.uptime()),
      draining: isDraining(),
      today,
      chains: chains().map((chain) => this.#chainStatus(chain, counts)),
    };
    return JSON.stringify(status);
  }

  /** Reads the usage of the day again if it is time, and returns the newest one. A store that does not respond delays it little. */
  async #readToday(): Promise<TodayStatus | null> {
    if (performance.now() >= this.#todayDueMs) {
      this.#readingToday ??= this.#replaceToday().finally(() => {
        this.#readingToday = undefined;
      });
      await Promise.race([this.#readingToday, wait(TODAY_WAIT_MS, undefined, { ref: false })]);
    }
    return this.#today;
  }

  async #replaceToday(): Promise<void> {
    const today = await this.#options.readToday().catch(() => undefined);
    if (today !== undefined) {
      this.#today = today;
      this.#todayDueMs = performance.now() + TODAY_PERIOD_MS;
    }
  }

  async #count(): Promise<StatusValues> {
    const before = this.#last;
    if (before !== undefined && performance.now() - before.atMs < MIN_PERIOD_MS) {
      return before;
    }
    const counts = await readStatusValues(this.#options.metrics);
    if (before !== undefined) {
      const seconds = (counts.atMs - before.atMs) / 1000;
      for (const { name } of this.#options.chains()) {
        const requests = sumOfValues(counts.of("requests", name)) - sumOfValues(before.of("requests", name));
        this.#rates.set(name, Math.max(0, requests) / seconds);
      }
    }
    this.#last = counts;
    return counts;
  }

  #chainStatus(chain: StatusChain, counts: StatusValues): ChainStatus {
    const { name, upstreams, pending } = chain;
    const { chainId } = upstreams.genesis;
    const view = viewOf(chain);
    const heads = view?.heads;
    const lookups = counts.of("cacheLookups", name);
    const hits = valuesWith(lookups, "outcome", HITS);
    return {
      name,
      chainId: chainId === 0n ? null : Number(chainId),
      head: labelOf(heads),
      latest: heads ? headStatus(heads, heads.latest) : null,
      safe: heads ? headStatus(heads, heads.safe) : null,
      finalized: heads ? headStatus(heads, heads.finalized) : null,
      pending: pendingStatus(chain, view),
      requestsPerSecond: this.#rates.get(name) ?? 0,
      saved: { calls: sumOfValues(counts.of("savedCalls", name)), units: sumOfValues(counts.of("savedUnits", name)) },
      hitRatio: shareOf(sumOfValues(hits), sumOfValues(lookups)),
      knownState: knownStateStatus(name, counts),
      proofs: proofStatus(counts.of("proofAnswers", name)),
      heads: headShares(counts.of("headResponses", name)),
      nodes: nodeStatus(chain, heads, counts),
      forwarded: chain.forwarded.list,
      flashblocks: pending.flashblocks.list(),
    };
  }
}
