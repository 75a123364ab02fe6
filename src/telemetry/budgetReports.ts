import type { BudgetOwner, DayBudgets } from "./dayBudgets.ts";
import type { Telemetry } from "./telemetry.ts";

const REPORT_MS = 1_000;
/** The share of a budget from which a line is logged. */
const WARNED_SHARE = 0.8;

const KEY_SPENT = "the units of today are spent: calls of the key are refused until 00:00 UTC";
const NODE_SPENT = "the units of today are spent: the node is used only if no other can answer, until 00:00 UTC";

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
      this.#budgets.all.map(({ name, of, budget }) => {
        const { spentUnits, unitsPerDay } = budget;
        const share = spentUnits / unitsPerDay;
        this.#measure(of, share);
        const stage = stageOf(share);
        if (stage !== before.get(name)?.stage) {
          this.#log(stage, of, { spentUnits, unitsPerDay });
        }
        return [name, { stage, remove: () => this.#measure(of, undefined) }];
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

  /** Sets the metric of a budget, or removes it. */
  #measure(owner: BudgetOwner, share: number | undefined): void {
    const { keyBudgetRatio, upstreamBudgetRatio } = this.#telemetry.metrics;
    if ("key" in owner) {
      share === undefined ? keyBudgetRatio.remove(owner) : keyBudgetRatio.set(owner, share);
    } else {
      share === undefined ? upstreamBudgetRatio.remove(owner) : upstreamBudgetRatio.set(owner, share);
    }
  }

  #log(stage: Stage, owner: BudgetOwner, amounts: object): void {
    const { log } = this.#telemetry;
    // A field `key` is redacted.
    const fields = { ...("key" in owner ? { clientId: owner.key } : owner), ...amounts };
    if (stage === "warned") {
      log.warn(fields, `${100 * WARNED_SHARE} % of the units of today are spent`);
    } else if (stage === "spent") {
      log.warn(fields, "key" in owner ? KEY_SPENT : NODE_SPENT);
    }
  }
}
