import type { DayBudgets } from "./dayBudgets.ts";
import type { Telemetry } from "./telemetry.ts";

const REPORT_MS = 1_000;
/** The share of a budget from which a line is logged. */
const WARNED_SHARE = 0.8;

type Stage = "low" | "warned" | "spent";

const stageOf = (share: number): Stage => (share >= 1 ? "spent" : share >= WARNED_SHARE ? "warned" : "low");

/** Sets the metrics of budgets each second, and logs those of which most or all is spent. */
export class BudgetReports {
  readonly #budgets: Pick<DayBudgets, "all">;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  /** By the name of the budget. */
  #reported: ReadonlyMap<string, { readonly stage: Stage; remove(): void }> = new Map();
  readonly #timer: NodeJS.Timeout;

  constructor(budgets: Pick<DayBudgets, "all">, telemetry: Pick<Telemetry, "log" | "metrics">) {
    this.#budgets = budgets;
    this.#telemetry = telemetry;
    this.#timer = setInterval(() => this.report(), REPORT_MS).unref();
  }

  report(): void {
    const before = this.#reported;
    this.#reported = new Map(
      this.#budgets.all.map(({ name, labels, budget }) => {
        const { spentUnits, unitsPerDay } = budget;
        const share = spentUnits / unitsPerDay;
        const { keyBudgetRatio } = this.#telemetry.metrics;
        keyBudgetRatio.set(labels, share);
        const stage = stageOf(share);
        if (stage !== before.get(name)?.stage) {
          // A field `key` is redacted.
          this.#log(stage, { clientId: labels.key, spentUnits, unitsPerDay });
        }
        return [name, { stage, remove: () => keyBudgetRatio.remove(labels) }];
      }),
    );
    for (const [name, { remove }] of before) {
      if (!this.#reported.has(name)) {
        remove();
      }
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #log(stage: Stage, fields: object): void {
    const { log } = this.#telemetry;
    if (stage === "warned") {
      log.warn(fields, "80 % of the units of today are spent");
    } else if (stage === "spent") {
      log.warn(fields, "the units of today are spent: calls of the key are refused until 00:00 UTC");
    }
  }
}
