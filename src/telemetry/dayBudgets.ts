import { DAY_MS } from "../core/usageStore.ts";

/** A key by its name, or a node. */
export type BudgetOwner = { readonly key: string } | { readonly chain: string; readonly node: string };

/** Units that may be spent on each UTC day. */
export interface ConfiguredBudget {
  readonly of: BudgetOwner;
  readonly unitsPerDay: number;
}

/** The units of one budget since the start, of all days. */
interface BudgetRow {
  /** Its name. */
  readonly key: string;
  readonly units: number;
  countCall(units: number, isError: boolean, isSaved: boolean): void;
}

/** The units of one budget on the current UTC day: those of this process, and what it knows of the others. */
export class DayBudget {
  /** A reload can change it. */
  unitsPerDay: number;
  readonly #row: BudgetRow;
  readonly #nowMs: () => number;
  /** Days since 1970. */
  #day: number;
  /** What all had spent on the day, as far as was known at `#mark`. */
  #known = 0;
  /** The units of the row when `#known` was right. */
  #mark: number;

  constructor(unitsPerDay: number, row: BudgetRow, nowMs: () => number) {
    this.unitsPerDay = unitsPerDay;
    this.#row = row;
    this.#nowMs = nowMs;
    this.#day = this.#today;
    this.#mark = row.units;
  }

  /** The name of its row in the ledger. */
  get row(): string {
    return this.#row.key;
  }

  /** Counts a call to a node. */
  spend(units: number): void {
    this.#row.countCall(units, false, false);
  }

  get spentUnits(): number {
    this.#beginDay();
    return this.#known + this.#row.units - this.#mark;
  }

  get isSpent(): boolean {
    return this.spentUnits >= this.unitsPerDay;
  }

  /** The time of the next 00:00 UTC, in milliseconds since 1970. */
  get endsAtMs(): number {
    return (this.#today + 1) * DAY_MS;
  }

  /** Milliseconds until then. */
  get endsInMs(): number {
    return this.endsAtMs - this.#nowMs();
  }

  /** Returns the function that takes what all had spent, if that includes what this process has spent until now. */
  mark(): (spentByAll: number) => void {
    this.#beginDay();
    const day = this.#day;
    const units = this.#row.units;
    return (spentByAll) => {
      if (this.#day === day) {
        // What is spent stays spent, also if the store has lost it.
        this.#known = Math.max(spentByAll, this.#known + units - this.#mark);
        this.#mark = units;
      }
    };
  }

  get #today(): number {
    return Math.floor(this.#nowMs() / DAY_MS);
  }

  #beginDay(): void {
    const today = this.#today;
    if (today !== this.#day) {
      this.#day = today;
      this.#known = 0;
      this.#mark = this.#row.units;
    }
  }
}

/** A configured budget. */
interface NamedBudget {
  /** The name of its row. */
  readonly name: string;
  readonly of: BudgetOwner;
  readonly budget: DayBudget;
}

/** Returns the name of the row of a budget. No name in it has a space. */
const nameOf = (owner: BudgetOwner): string =>
  "key" in owner ? `key ${owner.key}` : `node ${owner.chain} ${owner.node}`;

export interface DayBudgetsOptions {
  /** Returns the row with this name. It begins at 0. */
  rowOf(name: string): BudgetRow;
  /** Milliseconds since 1970. */
  nowMs(): number;
}

/** The budgets of the configuration. Replicas exchange what was spent: each exceeds a budget by what the others spend meanwhile. */
export class DayBudgets {
  readonly #options: DayBudgetsOptions;
  #budgets: ReadonlyMap<string, NamedBudget> = new Map();

  constructor(options: DayBudgetsOptions) {
    this.#options = options;
  }

  /** Replaces the budgets. What was spent stays. Of two budgets of one owner, the later one counts. */
  configure(configured: readonly ConfiguredBudget[]): void {
    const { rowOf, nowMs } = this.#options;
    const budgets = new Map<string, NamedBudget>();
    for (const { unitsPerDay, of } of configured) {
      const name = nameOf(of);
      const known = budgets.get(name) ?? this.#budgets.get(name);
      const budget = known?.budget ?? new DayBudget(unitsPerDay, rowOf(name), nowMs);
      budget.unitsPerDay = unitsPerDay;
      budgets.set(name, { name, of, budget });
    }
    this.#budgets = budgets;
  }

  find(owner: BudgetOwner): DayBudget | undefined {
    return this.#budgets.get(nameOf(owner))?.budget;
  }

  get all(): readonly NamedBudget[] {
    return [...this.#budgets.values()];
  }

  /** The names of their rows in the ledger. */
  get rows(): readonly string[] {
    return this.all.map(({ budget }) => budget.row);
  }

  /** Call it before the amounts of this process are stored. Returns the function that takes the units of the rows after that. */
  mark(): (unitsOfRows: ReadonlyMap<string, number>) => void {
    const marks = this.all.map(({ budget }) => [budget.row, budget.mark()] as const);
    return (unitsOfRows) => {
      for (const [row, take] of marks) {
        take(unitsOfRows.get(row) ?? 0);
      }
    };
  }
}
