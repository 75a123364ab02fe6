import type { Metrics } from "../telemetry/telemetry.ts";

type UnitMetrics = Pick<Metrics, "stateUnitsSpent" | "stateUnitsSaved">;

/** The reason why units are spent to follow state. */
export type UnitPurpose = Parameters<UnitMetrics["stateUnitsSpent"]["inc"]>[0]["purpose"];

/** Audits may cost this share of what is saved. */
const AUDIT_SHARE = 0.02;
/** Unused units for audits add up to this limit, so that a busy hour does not pay for audits of a quiet one. */
export const MAX_AUDIT_UNITS = 10_000;

/** Counts the provider units that following state costs and saves on one chain. */
export class UnitLedger {
  readonly #chain: string;
  readonly #metrics: UnitMetrics;
  #auditUnits = 0;

  constructor(chain: string, metrics: UnitMetrics) {
    this.#chain = chain;
    this.#metrics = metrics;
  }

  /** Units that the next audit may cost. Below 0 after an audit that cost more than expected. */
  get auditUnits(): number {
    return this.#auditUnits;
  }

  /** Counts the units of a read that state answered. */
  save(units: number): void {
    this.#metrics.stateUnitsSaved.inc({ chain: this.#chain }, units);
    this.#auditUnits = Math.min(MAX_AUDIT_UNITS, this.#auditUnits + AUDIT_SHARE * units);
  }

  spend(purpose: UnitPurpose, units: number): void {
    this.#metrics.stateUnitsSpent.inc({ chain: this.#chain, purpose }, units);
    if (purpose === "audit") {
      this.#auditUnits -= units;
    }
  }
}
