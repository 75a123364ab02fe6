import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import {
  AMOUNTS,
  type Amounts,
  addAmounts,
  dayBefore,
  dayOf,
  NO_AMOUNTS,
  type UsageBatch,
  type UsageStore,
} from "../core/usageStore.ts";
import { UsageLedger } from "./usageLedger.ts";

/** A process that is killed loses the usage of at most this time. */
const WRITE_MS = 1_000;
/** Limit for the last write at the end of the process. */
const CLOSE_MS = 1_000;
/** Rows of one batch. Redis does nothing else meanwhile: about a millisecond. */
const BATCH_ROWS = 250;

/** The usage of UTC days: of this process, or of all that share a store. Amounts wait in memory until the store has them. */
export class UsageDays {
  readonly #ledger: UsageLedger;
  readonly #store: UsageStore;
  readonly #nowMs: () => number;
  readonly #run = randomBytes(9).toString("base64url");
  readonly #startMs: number;
  /** What is in no batch yet, by day and row. */
  readonly #counted = new Map<string, Map<string, Amounts>>();
  /** Batches that the store has not confirmed. The first one may have been written. */
  readonly #batches: UsageBatch[] = [];
  #number = 0;
  #exchanging: Promise<void> | undefined;
  readonly #timer: NodeJS.Timeout;

  /** `ledger`: it counts since the start, and nothing else takes its changes. `nowMs`: milliseconds since 1970. */
  constructor(ledger: UsageLedger, store: UsageStore, nowMs: () => number = Date.now) {
    this.#ledger = ledger;
    this.#store = store;
    this.#nowMs = nowMs;
    this.#startMs = nowMs();
    const exchange = (): unknown => this.#exchange().catch(() => undefined);
    this.#timer = setInterval(exchange, WRITE_MS).unref();
    exchange();
  }

  /** Writes all that was counted until now, and tells the budgets what all have spent. Rejects if the store cannot be written now. */
  async exchange(): Promise<void> {
    // An exchange that is under way may have missed what was just counted.
    await this.#exchanging?.catch(() => undefined);
    await this.#exchange();
  }

  /** Returns the usage of this UTC day: of all replicas, if they share a store. Rejects if it cannot be read now. */
  async today() {
    const [today] = (await this.report(1, 0)).days;
    const { calls = 0, savedCalls = 0, savedUnits = 0 } = today?.total ?? {};
    return {
      day: today?.day ?? dayOf(this.#nowMs()),
      calls,
      saved: { calls: savedCalls, units: savedUnits },
      spent: today?.bill ?? { calls: 0, units: 0 },
    };
  }

  /** Returns the last `days` days that have amounts, the newest first, as plain data. Rejects if the store cannot be read now. */
  async report(days: number, top: number) {
    await this.exchange();
    const today = dayOf(this.#nowMs());
    const rows = [];
    for (let age = 0; age < days; age++) {
      const day = dayBefore(today, age);
      const stored = await this.#store.read(day);
      // A budget of which nothing is spent has a row too.
      if (stored?.rows.some(([, amounts]) => AMOUNTS.some((name) => amounts[name] !== 0))) {
        const ledger = new UsageLedger({ topKeys: 0, metrics: undefined });
        ledger.add(stored.rows);
        rows.push({ day, since: new Date(stored.sinceMs).toISOString(), ...ledger.report(top) });
      }
    }
    return { daysFrom: this.#store.name, days: rows };
  }

  /** Writes the last amounts, if the store takes them within a second. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.race([this.exchange(), wait(CLOSE_MS, undefined, { ref: false })]).catch(() => undefined);
  }

  #exchange(): Promise<void> {
    this.#exchanging ??= this.#writeCounted().finally(() => {
      this.#exchanging = undefined;
    });
    return this.#exchanging;
  }

  async #writeCounted(): Promise<void> {
    const day = dayOf(this.#nowMs());
    const take = this.#ledger.budgets.mark();
    this.#collect(day);
    const sums = new Map<string, number>();
    for (let batch = this.#nextBatch(); batch !== undefined; batch = this.#nextBatch()) {
      const units = await this.#store.add(batch);
      this.#batches.shift();
      for (const [index, [row]] of batch.day === day ? batch.rows.entries() : []) {
        sums.set(row, units[index] ?? 0);
      }
    }
    take(sums);
  }

  /** Adds what was counted since the last call to the day. The rows of budgets are written too, to learn what others have spent. */
  #collect(day: string): void {
    const { budgets } = this.#ledger;
    const rows = this.#counted.get(day) ?? new Map<string, Amounts>();
    const budgetRows = budgets.rows.map((row) => [row, NO_AMOUNTS] as const);
    for (const [row, amounts] of [...this.#ledger.takeChanges(), ...budgetRows]) {
      rows.set(row, addAmounts(rows.get(row) ?? NO_AMOUNTS, amounts));
    }
    if (rows.size > 0) {
      this.#counted.set(day, rows);
    }
  }

  /** Returns the batch that must be written next. What waits becomes batches when none is left. */
  #nextBatch(): UsageBatch | undefined {
    if (this.#batches.length === 0) {
      for (const [day, counted] of this.#counted) {
        const sinceMs = Math.max(this.#startMs, Date.parse(day));
        const rows = [...counted];
        for (let from = 0; from < rows.length; from += BATCH_ROWS) {
          this.#number++;
          const part = rows.slice(from, from + BATCH_ROWS);
          this.#batches.push({ run: this.#run, number: this.#number, day, sinceMs, rows: part });
        }
      }
      this.#counted.clear();
    }
    return this.#batches[0];
  }
}
