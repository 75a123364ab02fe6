/** Learning may cost this share of the units of the calls that nodes answer. */
const SHARE = 0.08;
/** Enough to learn the first calls of a quiet chain. */
const FIRST_UNITS = 500;
/** A quiet hour does not pay for a burst that a provider would limit. */
const MAX_UNITS = 20_000;

/** Limits the provider units that learning costs. A call that a node answers adds to them. */
export class LearningBudget {
  #units = FIRST_UNITS;

  /** Called with the units of a call that a node answered. */
  earn(units: number): void {
    this.#units = Math.min(MAX_UNITS, this.#units + SHARE * units);
  }

  spend(units: number): void {
    this.#units -= units;
  }

  canSpend(units: number): boolean {
    return units <= this.#units;
  }
}
