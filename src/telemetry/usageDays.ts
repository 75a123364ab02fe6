import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import {
  dayBefore,
  dayOf,
  KEY_FIELD,
  USAGE_DAYS,
  type UsageBatch,
  type UsageRow,
  type UsageStore,
} from "../core/usageStore.ts";
import { AMOUNTS, budgetRow, isOfKey, KeyUsage, type UsageChange, UsageLedger } from "./usageLedger.ts";

/** A process that is killed loses the usage of at most this time. */
const WRITE_MS = 1_000;
/** Limit for the last write at the end of the process. */
const CLOSE_MS = 1_000;
/** Rows of one batch. Redis does nothing else meanwhile: about a millisecond. */
const BATCH_ROWS = 1_000;
/** Rows that are no keys: few, and never summed with keys. */
const ROW_FIELD = "row:";

const hasAmounts = (change: UsageChange): boolean => AMOUNTS.some((amount) => change[amount] !== 0);

const fieldOf = (row: { readonly key: string }): string => `${isOfKey(row) ? KEY_FIELD : ROW_FIELD}${row.key}`;

const rowOf = (change: UsageChange): UsageRow => [fieldOf(change), AMOUNTS.map((amount) => change[amount])];

const changeOf = ([field, amounts]: UsageRow): UsageChange => {
  const usage = new KeyUsage(field.slice(field.indexOf(":") + 1));
  for (const [index, amount] of AMOUNTS.entries()) {
    usage[amount] = amounts[index] ?? 0;
  }
  return usage;
};

export interface UsageDaysOptions {
  /** Counts since the start. Nothing else takes its changes. */
  readonly ledger: Pick<UsageLedger, "takeChanges" | "budgets">;
  /** Undefined: days are kept in memory. */
  readonly store: UsageStore | undefined;
  /** Keys that are kept of a day in memory when it is over. */
  readonly topKeys: number;
  /** Milliseconds since 1970. Default: the clock of the system. */
  readonly nowMs?: () => number;
}

/** The usage of UTC days: of this process, or of all that share a store. Amounts wait in memory until the store has them. */
export class UsageDays {
  readonly #options: UsageDaysOptions;
  readonly #run = randomBytes(9).toString("base64url");
  readonly #startMs: number;
  /** By day. With a store: what is in no batch yet. */
  readonly #counted = new Map<string, UsageLedger>();
  /** Batches that the store has not confirmed. The first one may have been written. */
  readonly #batches: UsageBatch[] = [];
  #number = 0;
  #writing: Promise<void> | undefined;
  #exchanging: Promise<void> | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(options: UsageDaysOptions) {
    this.#options = options;
    this.#startMs = this.#nowMs();
    const exchange = (): unknown => this.exchange().catch(() => undefined);
    this.#timer = setInterval(exchange, WRITE_MS).unref();
    exchange();
  }

  /** Writes what was counted, and reads what all have spent of their budgets. Rejects if the store cannot be used now. */
  exchange(): Promise<void> {
    this.#exchanging ??= this.#exchange().finally(() => {
      this.#exchanging = undefined;
    });
    return this.#exchanging;
  }

  /** Writes what was counted. Rejects if the store cannot be written now: it is tried again every second. */
  async write(): Promise<void> {
    this.#collect();
    const { store } = this.#options;
    // A write that ends now may have missed what was just counted.
    while (store !== undefined && (this.#counted.size > 0 || this.#batches.length > 0)) {
      this.#writing ??= this.#writeBatches(store).finally(() => {
        this.#writing = undefined;
      });
      await this.#writing;
    }
  }

  /** Returns the last `days` days that have amounts, the newest first, as plain data. Rejects if the store cannot be read now. */
  async report(days: number, top: number) {
    // After this, all amounts are in the store, and none are here too.
    await this.write();
    const { store } = this.#options;
    const today = dayOf(this.#nowMs());
    const rows = [];
    for (let age = 0; age < days; age++) {
      const day = dayBefore(today, age);
      const counted = store === undefined ? this.#inMemory(day) : await readDay(store, day);
      if (counted !== undefined) {
        const { sinceMs, ledger } = counted;
        rows.push({ day, since: new Date(sinceMs).toISOString(), ...ledger.report(top) });
      }
    }
    return { daysFrom: store?.name ?? "memory", days: rows };
  }

  /** Writes the last amounts, if the store takes them within a second. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.race([this.write(), wait(CLOSE_MS, undefined, { ref: false })]).catch(() => undefined);
  }

  async #exchange(): Promise<void> {
    const { store, ledger } = this.#options;
    const { names } = ledger.budgets;
    if (store === undefined || names.length === 0) {
      return this.write();
    }
    const day = dayOf(this.#nowMs());
    const take = ledger.budgets.mark();
    await this.write();
    const fields = new Map(names.map((name) => [fieldOf({ key: budgetRow(name) }), name]));
    const stored = await store.read(day, [...fields.keys()]);
    const spent = stored?.rows.map((row) => [fields.get(row[0]) ?? "", changeOf(row).units] as const);
    take(new Map(spent));
  }

  #nowMs(): number {
    return this.#options.nowMs?.() ?? Date.now();
  }

  #sinceMs(day: string): number {
    return Math.max(this.#startMs, Date.parse(day));
  }

  #inMemory(day: string): CountedDay | undefined {
    const ledger = this.#counted.get(day);
    return ledger && { sinceMs: this.#sinceMs(day), ledger };
  }

  /** Adds what was counted since the last call to the day of now. */
  #collect(): void {
    const changes = this.#options.ledger.takeChanges().filter(hasAmounts);
    if (changes.length > 0) {
      const day = dayOf(this.#nowMs());
      this.#ledgerOf(day).add(changes);
    }
  }

  #ledgerOf(day: string): UsageLedger {
    const existing = this.#counted.get(day);
    if (existing !== undefined) {
      return existing;
    }
    const { topKeys } = this.#options;
    for (const [earlier, counted] of this.#counted) {
      if (earlier <= dayBefore(day, USAGE_DAYS)) {
        this.#counted.delete(earlier);
      } else {
        this.#counted.set(earlier, counted.reducedTo(topKeys));
      }
    }
    const ledger = new UsageLedger({ topKeys, metrics: undefined });
    this.#counted.set(day, ledger);
    return ledger;
  }

  async #writeBatches(store: UsageStore): Promise<void> {
    for (let batch = this.#nextBatch(); batch !== undefined; batch = this.#nextBatch()) {
      await store.add(batch);
      this.#batches.shift();
    }
  }

  /** Returns the batch that must be written next. What waits becomes batches when none is left. */
  #nextBatch(): UsageBatch | undefined {
    if (this.#batches.length === 0) {
      for (const [day, ledger] of this.#counted) {
        const rows = ledger.takeChanges().map(rowOf);
        for (let from = 0; from < rows.length; from += BATCH_ROWS) {
          this.#number++;
          const part = rows.slice(from, from + BATCH_ROWS);
          this.#batches.push({ run: this.#run, number: this.#number, day, sinceMs: this.#sinceMs(day), rows: part });
        }
      }
      this.#counted.clear();
    }
    return this.#batches[0];
  }
}

interface CountedDay {
  readonly sinceMs: number;
  readonly ledger: UsageLedger;
}

const readDay = async (store: UsageStore, day: string): Promise<CountedDay | undefined> => {
  const stored = await store.read(day);
  if (stored === undefined) {
    return undefined;
  }
  const ledger = new UsageLedger({ topKeys: 0, metrics: undefined });
  ledger.add(stored.rows.map(changeOf));
  return { sinceMs: stored.sinceMs, ledger };
};
