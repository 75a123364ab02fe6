import { AMOUNTS, type Amounts, KeyUsage, OTHER_KEY } from "./keyUsage.ts";
import type { Metrics } from "./telemetry.ts";

export interface UsageLedgerOptions {
  /** Keys with series of their own. */
  readonly topKeys: number;
  /** Undefined if another process has the metrics of keys. */
  readonly metrics: Pick<Metrics, "beforeScrape" | "keyAmounts"> | undefined;
}

/** Amounts of one key since the last report of a process. */
export type UsageChange = Amounts & { readonly key: string };

/** Keys that are counted one by one. Any further key counts as `other`: tokens can name any number of subjects. */
const MAX_KEYS = 10_000;

const byUnits = (a: Amounts, b: Amounts): number => b.units - a.units || b.calls - a.calls;

const sumOf = (list: readonly Amounts[]): Amounts => {
  const sum = new KeyUsage(OTHER_KEY);
  for (const usage of list) {
    for (const amount of AMOUNTS) {
      sum[amount] += usage[amount];
    }
  }
  return sum;
};

const formatAmounts = (usage: Amounts) => ({
  ...Object.fromEntries(AMOUNTS.map((amount) => [amount, usage[amount]])),
  savedShare: usage.calls === 0 ? null : usage.savedCalls / usage.calls,
});

const removeSeries = (keyAmounts: Metrics["keyAmounts"], { key }: KeyUsage): void => {
  if (key === OTHER_KEY) {
    return;
  }
  for (const amount of AMOUNTS) {
    keyAmounts[amount].remove({ key });
  }
};

const changeSince = (usage: KeyUsage, before: Amounts | undefined): UsageChange => {
  const change = new KeyUsage(usage.key);
  for (const amount of AMOUNTS) {
    change[amount] = usage[amount] - (before?.[amount] ?? 0);
  }
  return { ...change };
};

/** The usage of all keys. The metrics have a series for those that cost most, and the sum of the others. */
export class UsageLedger {
  readonly #options: UsageLedgerOptions;
  readonly #since = new Date();
  readonly #usages = new Map<string, KeyUsage>();
  /** The amounts that were added to the metrics, or reported. */
  readonly #added = new Map<KeyUsage, Amounts>();
  #listed: ReadonlySet<KeyUsage> = new Set();

  constructor(options: UsageLedgerOptions) {
    this.#options = options;
    const { metrics } = options;
    metrics?.beforeScrape.add(() => this.#addToMetrics(metrics));
  }

  /** Returns the usage of a key. It begins at 0. */
  of(key: string): KeyUsage {
    const existing = this.#usages.get(key);
    if (existing !== undefined) {
      return existing;
    }
    if (this.#usages.size >= MAX_KEYS && key !== OTHER_KEY) {
      return this.of(OTHER_KEY);
    }
    const usage = new KeyUsage(key);
    this.#usages.set(key, usage);
    return usage;
  }

  /** Returns the amounts since the last call, for the ledger of another process. */
  takeChanges(): readonly UsageChange[] {
    const changes: UsageChange[] = [];
    for (const usage of this.#usages.values()) {
      const before = this.#added.get(usage);
      if (before === undefined || AMOUNTS.some((amount) => usage[amount] !== before[amount])) {
        changes.push(changeSince(usage, before));
        this.#added.set(usage, { ...usage });
      }
    }
    return changes;
  }

  /** Adds the amounts of another process. */
  add(changes: readonly UsageChange[]): void {
    for (const change of changes) {
      const usage = this.of(change.key);
      for (const amount of AMOUNTS) {
        usage[amount] += change[amount];
      }
    }
  }

  /** Formats the usage as JSON: the `top` keys that cost most, the sum of the others, and the sum of all. */
  format(prices: string, top: number): string {
    const sorted = [...this.#usages.values()].sort(byUnits);
    const rest = sorted.slice(top);
    return JSON.stringify(
      {
        since: this.#since.toISOString(),
        prices,
        keys: sorted.slice(0, top).map((usage) => ({ key: usage.key, ...formatAmounts(usage) })),
        ...(rest.length > 0 && { others: { keys: rest.length, ...formatAmounts(sumOf(rest)) } }),
        total: formatAmounts(sumOf(sorted)),
      },
      null,
      2,
    );
  }

  /** Adds the amounts since the last scrape to the series of each key, or to `other`. No series ever falls. */
  #addToMetrics({ keyAmounts }: Pick<Metrics, "keyAmounts">): void {
    const { topKeys } = this.#options;
    const usages = [...this.#usages.values()];
    const listed = new Set(usages.length <= topKeys ? usages : usages.toSorted(byUnits).slice(0, topKeys));
    for (const usage of usages) {
      const before = this.#added.get(usage);
      const key = listed.has(usage) ? usage.key : OTHER_KEY;
      for (const amount of AMOUNTS) {
        keyAmounts[amount].inc({ key }, usage[amount] - (before?.[amount] ?? 0));
      }
      this.#added.set(usage, { ...usage });
    }
    for (const usage of this.#listed) {
      if (!listed.has(usage)) {
        removeSeries(keyAmounts, usage);
      }
    }
    this.#listed = listed;
  }
}
