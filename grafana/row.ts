/** Grafana's names of units. */
type Unit = "reqps" | "ops" | "s" | "bytes" | "percentunit" | "short" | "none" | "cps";

export interface Query {
  readonly expr: string;
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** The meaning of the panel, and the action if its values are unusual. */
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  readonly stacked?: true;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}
