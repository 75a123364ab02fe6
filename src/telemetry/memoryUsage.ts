import {
  addAmounts,
  dayBefore,
  isKeyRow,
  NO_AMOUNTS,
  OTHER_KEY,
  type StoredUsage,
  USAGE_DAYS,
  type UsageBatch,
  type UsageRow,
  type UsageStore,
} from "../core/usageStore.ts";
import { byUnits } from "./usageLedger.ts";

interface CountedDay {
  readonly sinceMs: number;
  readonly rows: Map<string, UsageRow[1]>;
}

const addRows = (sums: Map<string, UsageRow[1]>, rows: Iterable<UsageRow>): Map<string, UsageRow[1]> => {
  for (const [row, amounts] of rows) {
    sums.set(row, addAmounts(sums.get(row) ?? NO_AMOUNTS, amounts));
  }
  return sums;
};

/** The usage of days of one process, since its start. */
export class MemoryUsage implements UsageStore {
  readonly name = "memory";
  readonly #topKeys: number;
  readonly #days = new Map<string, CountedDay>();

  /** `topKeys`: the keys that are kept of a day when it is over. */
  constructor(topKeys: number) {
    this.#topKeys = topKeys;
  }

  async add({ day, sinceMs, rows }: UsageBatch): Promise<readonly number[]> {
    if (!this.#days.has(day)) {
      this.#endDays(day);
    }
    const counted = this.#days.get(day) ?? { sinceMs, rows: new Map() };
    this.#days.set(day, counted);
    addRows(counted.rows, rows);
    return rows.map(([row]) => counted.rows.get(row)?.units ?? 0);
  }

  async read(day: string): Promise<StoredUsage | undefined> {
    const counted = this.#days.get(day);
    return counted && { sinceMs: counted.sinceMs, rows: [...counted.rows] };
  }

  /** Removes old days, and sums the keys of the others that cost less. */
  #endDays(today: string): void {
    const oldest = dayBefore(today, USAGE_DAYS);
    for (const [day, { sinceMs, rows }] of this.#days) {
      if (day <= oldest) {
        this.#days.delete(day);
        continue;
      }
      const keys = [...rows].filter(([row]) => isKeyRow(row)).sort(([, one], [, other]) => byUnits(one, other));
      const others = new Set(keys.slice(this.#topKeys).map(([row]) => row));
      const kept = [...rows].map(([row, amounts]) => [others.has(row) ? OTHER_KEY : row, amounts] as const);
      this.#days.set(day, { sinceMs, rows: addRows(new Map(), kept) });
    }
  }
}
