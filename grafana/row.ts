/** Grafana's names of units. A suffix is shown behind the number. `short` and `none` are numbers of what the title names. */
export type Unit =
  | ("reqps" | "ops" | "cps" | "s" | "bytes" | "binBps" | "percentunit" | "short" | "none")
  | `suffix:${string}`;

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
  /** Shows the time since midnight, in one value, whatever the dashboard shows. */
  readonly today?: true;
  /** Shows the newest value alone, in the colour of the highest level that it reaches. */
  readonly levels?: readonly Level[];
}

/** A colour from this value on. The first level has no value. */
export interface Level {
  readonly from: number | null;
  readonly color: "green" | "orange" | "red" | "text";
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}
