import type { Caller, CallUsage } from "../core/context.ts";
import {
  AMOUNTS,
  type Amounts,
  addAmounts,
  isKeyRow,
  NO_AMOUNTS,
  OTHER_KEY,
  type UsageRow,
} from "../core/usageStore.ts";
import { DayBudgets } from "./dayBudgets.ts";
import type { Metrics } from "./telemetry.ts";

/** The amounts of each key that are metrics too. */
const SERIES = ["calls", "units", "savedUnits"] as const;

/** The amounts of one key since the start. Plain numbers, because every cache hit changes them. */
export class KeyUsage implements CallUsage, Amounts {
  readonly key: string;
  calls = 0;
  /** Calls that ended with an error. */
  errors = 0;
  /** Calls that needed no call to a node. */
  savedCalls = 0;
  units = 0;
  savedUnits = 0;
  receivedBytes = 0;
  /** Before compression. */
  sentBytes = 0;
  /** The price of the calls to nodes that it caused. */
  spentUnits = 0;

  constructor(key: string) {
    this.key = key;
  }

  countCall(units: number, isError: boolean, isSaved: boolean): void {
    this.calls++;
    this.units += units;
    if (isError) {
      this.errors++;
    }
    if (isSaved) {
      this.savedCalls++;
      this.savedUnits += units;
    }
  }

  spend(units: number): void {
    this.spentUnits += units;
  }

  receive(bytes: number): void {
    this.receivedBytes += bytes;
  }

  send(bytes: number): void {
    this.sentBytes += bytes;
  }
}

/** Who causes calls to nodes. */
type Spender = Pick<Caller, "clientId" | "connection" | "usage">;

export interface UsageLedgerOptions {
  /** Keys with series of their own. */
  readonly topKeys: number;
  /** Undefined for a ledger of one day, which has no metrics. */
  readonly metrics: Pick<Metrics, "beforeScrape" | "keyAmounts"> | undefined;
  /** Milliseconds since 1970. Default: the clock of the system. */
  readonly nowMs?: () => number;
}

/** Keys that are counted one by one. Any further key counts as `other`: tokens can name any number of subjects. */
const MAX_KEYS = 10_000;

/** Rows beside those of keys. No name of a key has a space. */
const ADDRESSES = "addresses ";
const NODES = "nodes ";
const BUDGETS = "budgets ";

/** The class of a client without a key, by its address: of an IPv6 client its /64. */
const classOf = (address: string): "loopback" | "private" | "public" => {
  if (/^(?:127\.|0:0:0:0::\/64$)/.test(address)) {
    return "loopback";
  }
  return /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|f[cd]|fe[89ab])/.test(address)
    ? "private"
    : "public";
};

const isOfKey = ({ key }: KeyUsage): boolean => isKeyRow(key);

/** Sorts what costs most first. */
export const byUnits = (a: Amounts, b: Amounts): number => b.units - a.units || b.calls - a.calls;

const sumOf = (list: readonly Amounts[]): Amounts => list.reduce(addAmounts, NO_AMOUNTS);

const formatAmounts = ({ calls, errors, savedCalls, units, savedUnits, spentUnits, ...bytes }: Amounts) => ({
  ...{ calls, errors, savedCalls, units, savedUnits, spentUnits },
  ...{ receivedBytes: bytes.receivedBytes, sentBytes: bytes.sentBytes },
  savedShare: calls === 0 ? null : savedCalls / calls,
});

const removeSeries = (keyAmounts: Metrics["keyAmounts"], { key }: KeyUsage): void => {
  if (key === OTHER_KEY) {
    return;
  }
  for (const amount of SERIES) {
    keyAmounts[amount].remove({ key });
  }
};

/** The usage of all keys. The metrics have a series for those that cost most, and the sum of the others. */
export class UsageLedger {
  /** The units that may be spent on a day. */
  readonly budgets: DayBudgets;
  readonly #options: UsageLedgerOptions;
  readonly #since = new Date();
  readonly #usages = new Map<string, KeyUsage>();
  /** The amounts that were added to the metrics. */
  readonly #added = new Map<KeyUsage, Amounts>();
  /** The amounts of the changes that were taken. */
  readonly #taken = new Map<KeyUsage, Amounts>();
  #listed: ReadonlySet<KeyUsage> = new Set();

  constructor(options: UsageLedgerOptions) {
    this.#options = options;
    const { metrics, nowMs = Date.now } = options;
    this.budgets = new DayBudgets({ rowOf: (name) => this.#row(BUDGETS + name), nowMs });
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

  /** Returns the function that finds the usage of a client of this chain without a key. */
  addresses(chain: string): (address: string) => CallUsage {
    // Hot path: clients call again and again from one address.
    let last = "";
    let usage: KeyUsage | undefined;
    return (address) => {
      if (usage === undefined || address !== last) {
        last = address;
        usage = this.#row(`${ADDRESSES}${chain} ${classOf(address)}`);
      }
      return usage;
    };
  }

  /** Returns the function that counts units which a client of this chain spends. */
  spending(chain: string): (caller: Spender, units: number) => void {
    const usageOf = this.addresses(chain);
    return ({ usage, clientId }, units) => (usage ?? usageOf(clientId)).spend(units);
  }

  /** Returns the function that counts the calls to the nodes of this chain: those of clients, and those of forebay itself. */
  nodeCalls(chain: string): (caller: Spender | undefined, units: number) => void {
    const rows = { clients: `${NODES}${chain} clients`, forebay: `${NODES}${chain} forebay` };
    const spend = this.spending(chain);
    return (caller, units) => {
      const isOfClient = caller?.connection !== undefined;
      this.#row(isOfClient ? rows.clients : rows.forebay).countCall(units, false, false);
      if (isOfClient) {
        spend(caller, units);
      }
    };
  }

  /** Returns a row beside the keys. Their number is limited by the configuration. */
  #row(name: string): KeyUsage {
    const usage = this.#usages.get(name) ?? new KeyUsage(name);
    this.#usages.set(name, usage);
    return usage;
  }

  /** Returns the rows of a kind, with the parts of their names. */
  #rowsOf(kind: string): readonly (readonly [chain: string, part: string, KeyUsage])[] {
    return [...this.#usages.values()]
      .filter(({ key }) => key.startsWith(kind))
      .map((usage) => {
        const [chain = "", part = ""] = usage.key.slice(kind.length).split(" ");
        return [chain, part, usage] as const;
      });
  }

  /** Returns the amounts of each changed row since the last call. */
  takeChanges(): readonly UsageRow[] {
    const changes: UsageRow[] = [];
    for (const usage of this.#usages.values()) {
      const before = this.#taken.get(usage) ?? NO_AMOUNTS;
      if (AMOUNTS.some((amount) => usage[amount] !== before[amount])) {
        const change = { ...NO_AMOUNTS };
        for (const amount of AMOUNTS) {
          change[amount] = usage[amount] - before[amount];
        }
        changes.push([usage.key, change]);
        this.#taken.set(usage, { ...usage });
      }
    }
    return changes;
  }

  /** Adds the amounts of rows. */
  add(rows: readonly UsageRow[]): void {
    for (const [row, amounts] of rows) {
      const usage = isKeyRow(row) ? this.of(row) : this.#row(row);
      for (const amount of AMOUNTS) {
        usage[amount] += amounts[amount];
      }
    }
  }

  /** Formats the usage as JSON, with further members. */
  format(prices: string, top: number, more: object = {}): string {
    return JSON.stringify({ since: this.#since.toISOString(), prices, ...this.report(top), ...more }, null, 2);
  }

  /** Returns the usage as plain data: the `top` keys that cost most, the sum of the others, and the sum of all. */
  report(top: number) {
    const sorted = [...this.#usages.values()].filter(isOfKey).sort(byUnits);
    const addresses = this.#rowsOf(ADDRESSES);
    const nodes = this.#rowsOf(NODES);
    const ofClients = [...sorted, ...addresses.map(([, , usage]) => usage)];
    const bill = sumOf(nodes.map(([, , usage]) => usage));
    const others = sorted.slice(top);
    return {
      keys: sorted.slice(0, top).map((usage) => ({ key: usage.key, ...formatAmounts(usage) })),
      ...(others.length > 0 && { others: { keys: others.length, ...formatAmounts(sumOf(others)) } }),
      addresses: addresses.map(([chain, addressClass, usage]) => ({
        chain,
        class: addressClass,
        ...formatAmounts(usage),
      })),
      total: formatAmounts(sumOf(ofClients)),
      nodes: nodes.map(([chain, caller, { calls, units }]) => ({ chain, caller, calls, units })),
      bill: { calls: bill.calls, units: bill.units },
    };
  }

  /** Adds the amounts since the last scrape to the series of each key, or to `other`. No series ever falls. */
  #addToMetrics({ keyAmounts }: Pick<Metrics, "keyAmounts">): void {
    const { topKeys } = this.#options;
    const usages = [...this.#usages.values()].filter(isOfKey);
    const listed = new Set(usages.length <= topKeys ? usages : usages.toSorted(byUnits).slice(0, topKeys));
    for (const usage of usages) {
      const before = this.#added.get(usage);
      const key = listed.has(usage) ? usage.key : OTHER_KEY;
      for (const amount of SERIES) {
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
